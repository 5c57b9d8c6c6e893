//! Bounds on what the threads of a model program may still do, read off its text.

use std::collections::{BTreeMap, BTreeSet};

use vsrun::search::allowed::{Allowed, AllowedOps, KindClass, Operand, ThreadOrigin};

use vsrun_model::{Kind, ObjKind, Uid, POLLS};

use super::{How, Ins, Program};

/// Number of the robust mutex, see [`super::MUTEXES`].
const ROBUST: u32 = 4;

/// The text of a program and which thread runs which part of it.
#[derive(Clone, Debug)]
pub struct Text {
    program: Program,
    codes: BTreeMap<Uid, usize>,
    /// A process may have something to settle at its end.
    settles: bool,
    robust: bool,
    /// Some process has several threads.
    threaded: bool,
}

impl Text {
    pub fn new(program: &Program) -> Text {
        let all = || program.iter().flatten();
        let threaded = all().any(|ins| matches!(ins, Ins::Create(_)));
        let (whole, codes) = (program.clone(), BTreeMap::new());
        let mut text = Text { program: whole, codes, settles: false, robust: false, threaded };
        text.name(Uid::MAIN, 0);
        text.robust = all().any(|ins| matches!(ins, Ins::Lock(ROBUST, _) | Ins::CondWait(_, ROBUST, _)));
        text.settles =
            text.robust || all().any(|ins| matches!(ins, Ins::Sysv(_, true, _) | Ins::Record(..) | Ins::Flock(..)));
        text
    }

    fn name(&mut self, uid: Uid, code: usize) {
        self.codes.insert(uid, code);
        let mut n = 0;
        for ins in self.program[code].clone() {
            if let Ins::Create(new) | Ins::Fork(new) = ins {
                n += 1;
                self.name(uid.child(n), new);
            }
        }
    }

    /// The most transitions that an instruction may take: what waits in two steps takes two.
    fn transitions(&self, ins: &Ins) -> u32 {
        match ins {
            // The third: it has given up.
            Ins::CondWait(..) => 3,
            Ins::FutexWaitv(..) => 5,
            Ins::Write(..) | Ins::Barrier(_) | Ins::FutexWait(..) | Ins::Flock(..) => 2,
            Ins::Count(_)
            | Ins::CountStream(_)
            | Ins::Add(..)
            | Ins::AssertNot(..)
            | Ins::SkipIf(_)
            | Ins::OnceEnd(_)
            | Ins::Create(_) => 0,
            // A fork is visible where other threads have lived in the process.
            Ins::Fork(_) => u32::from(self.threaded),
            _ => 1,
        }
    }

    /// What the instructions of `code` from `from` on may do, and the threads that they create.
    fn collect(&self, code: usize, from: usize, ops: &mut BTreeSet<(KindClass, Operand)>) {
        for ins in &self.program[code][from..] {
            ops.extend(classes(ins));
            if let Ins::Create(new) | Ins::Fork(new) = *ins {
                self.collect(new, 0, ops);
            }
        }
    }
}

impl Allowed for Text {
    fn of(&self, thread: &ThreadOrigin) -> AllowedOps {
        let Some(&code) = self.codes.get(&thread.uid) else { return AllowedOps::anything() };
        // As many instructions as its transitions fill at least, and those that no thread stands at.
        let mut left = thread.steps;
        let behind = self.program[code].iter().take_while(|ins| {
            let most = self.transitions(ins);
            let whole = left >= most;
            left = left.saturating_sub(most);
            whole
        });
        let from = behind.count();
        let mut ops = BTreeSet::new();
        self.collect(code, from, &mut ops);
        if super::events::uses(&self.program) || super::sockets::uses(&self.program) {
            // The end of a process closes what it has.
            ops.insert((KindClass::On(ObjKind::CHANNEL), Operand::Any));
        }
        if self.settles {
            ops.insert((KindClass::Does(Kind::EXIT), Operand::Any));
        }
        if self.robust {
            ops.insert((KindClass::Does(Kind::THREAD_EXIT), Operand::Any));
        }
        // The end of a process closes what it has.
        if super::events::uses(&self.program) || super::sockets::uses(&self.program) {
            ops.insert((KindClass::On(ObjKind::CHANNEL), Operand::Any));
        }
        let tries = self.program[code].iter().filter(|ins| tries(ins)).count();
        if tries > usize::from(POLLS) {
            ops.insert((KindClass::Poll, Operand::Any));
        }
        // A signal may come to anybody, also when a child ends.
        let signals = self.program.iter().flatten().any(super::signals::about_signals);
        AllowedOps { anything: signals, ops }
    }
}

fn tries(ins: &Ins) -> bool {
    let how = match ins {
        Ins::Lock(_, how) | Ins::SemWait(_, how) | Ins::Read(_, how) | Ins::Write(_, how) => how,
        Ins::Record(.., how) | Ins::Flock(.., how) => how,
        Ins::MsgSend(.., how) | Ins::MsgReceive(.., how) => how,
        Ins::Stream(_, _, how) | Ins::Spin(_, how) | Ins::Sysv(_, _, how) | Ins::Join(_, how) | Ins::Wait(_, how) => {
            how
        }
        Ins::Fd(_, _, how) | Ins::Sock(_, _, how) => how,
        _ => return false,
    };
    *how == How::Try
}

fn place(n: u32) -> Operand {
    Operand::Addr(u64::from(n) * 64)
}

fn classes(ins: &Ins) -> Vec<(KindClass, Operand)> {
    let on = |kind, n: &u32| (KindClass::On(kind), place(*n));
    let plain = |class| vec![(class, Operand::Any)];
    match ins {
        Ins::Lock(m, _) | Ins::Unlock(m) | Ins::RawUnlock(m) => vec![on(ObjKind::MUTEX, m)],
        Ins::CondWait(c, m, _) | Ins::WaitWhile(c, m, _) => vec![on(ObjKind::COND, c), on(ObjKind::MUTEX, m)],
        Ins::Signal(c) | Ins::Broadcast(c) => vec![on(ObjKind::COND, c)],
        Ins::SemWait(s, _) | Ins::Post(s) | Ins::SemGet(s) => vec![on(ObjKind::SEM, s)],
        Ins::Read(l, _) | Ins::Write(l, _) | Ins::RwUnlock(l) => vec![on(ObjKind::RWLOCK, l)],
        Ins::Spin(s, _) | Ins::SpinUnlock(s) => vec![on(ObjKind::SPIN, s)],
        Ins::Stream(s, ..) | Ins::StreamUnlock(s, _) => vec![on(ObjKind::STREAM, s)],
        Ins::Draw => vec![(KindClass::On(ObjKind::LIBC), place(0))],
        Ins::Barrier(b) => vec![on(ObjKind::BARRIER, b)],
        Ins::Sysv(ops, ..) => {
            let sems = ops.iter().fold(0, |set, (num, _)| set | 1 << (num % 32));
            vec![(KindClass::On(ObjKind::SYSV), Operand::Sems(sems))]
        }
        Ins::SysvSet(..) => plain(KindClass::On(ObjKind::SYSV)),
        Ins::Record(f, ..) | Ins::RecordUnlock(f) | Ins::RecordTest(f, _) => vec![on(ObjKind::RECORDS, &f.file)],
        Ins::Flock(f, ..) => vec![on(ObjKind::FLOCK, f)],
        Ins::MsgSend(q, ..) | Ins::MsgReceive(q, ..) | Ins::MsgControl(q, _) => vec![on(ObjKind::MSGQ, q)],
        Ins::FutexWait(f, ..) | Ins::FutexWake(f, _) => vec![on(ObjKind::FUTEX, f)],
        Ins::FutexWaitv([f, g], ..) | Ins::FutexRequeue(f, g, ..) => vec![on(ObjKind::FUTEX, f), on(ObjKind::FUTEX, g)],
        Ins::Toss(_) => plain(KindClass::Does(Kind::TOSS)),
        Ins::Once(n) => vec![on(ObjKind::ONCE, n)],
        Ins::Join(_, How::Try | How::Timed(_)) => plain(KindClass::TryJoin),
        Ins::Join(..) => plain(KindClass::Does(Kind::JOIN)),
        Ins::Wait(..) => plain(KindClass::Does(Kind::WAIT)),
        Ins::Create(_) => plain(KindClass::Create),
        Ins::Fork(_) => plain(KindClass::Does(Kind::FORK)),
        Ins::Yield => plain(KindClass::Does(Kind::YIELD)),
        Ins::Sleep(_) => plain(KindClass::Does(Kind::SLEEP)),
        Ins::Cancel(_) => plain(KindClass::Does(Kind::CANCEL)),
        Ins::Exit => plain(KindClass::Does(Kind::EXIT)),
        Ins::Fd(..) | Ins::Sock(..) => plain(KindClass::On(ObjKind::CHANNEL)),
        Ins::Count(_) | Ins::CountStream(_) | Ins::Add(..) | Ins::AssertNot(..) | Ins::SkipIf(_) | Ins::OnceEnd(_) => {
            Vec::new()
        }
        Ins::Load(v) | Ins::Store(v, _) | Ins::Update(v) | Ins::Swap(v, ..) | Ins::Await(v, None, _) => {
            vec![on(ObjKind::MEMORY, &(v / 2))]
        }
        Ins::Await(v, Some(w), _) => vec![on(ObjKind::MEMORY, &(v / 2)), on(ObjKind::MEMORY, &(w / 2))],
        Ins::Num(_) => plain(KindClass::On(ObjKind::DESCRIPTOR)),
        Ins::Use(_) => vec![
            (KindClass::On(ObjKind::FILE), Operand::Any),
            (KindClass::On(ObjKind::PATHS), Operand::Any),
            (KindClass::Poll, Operand::Any),
        ],
        // See where these are used: anything may come of signals.
        Ins::Kill(..) | Ins::Tkill(..) => plain(KindClass::Does(Kind::KILL)),
        Ins::Mask(..) | Ins::Suspend(_) | Ins::Sigwait(..) | Ins::Alarm(_) | Ins::Log(_) => Vec::new(),
    }
}
