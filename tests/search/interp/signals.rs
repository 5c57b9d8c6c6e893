//! Signals in model programs: what is sent, taken and handled, by the protocol that the shim follows.

use vsrun_model::errno::EINTR;
use vsrun_model::signal::{bit, Sent};
use vsrun_model::{Effects, Kind, Op, Pid, SigInfo, Tid, NONE};

use super::events::On;
use super::{How, Ins, Run};

/// A handler that logs and posts.
pub const POSTS: i32 = 10;
/// One that locks, installed with SA_RESTART.
pub const LOCKS: i32 = 12;
pub const ALARM: i32 = 14;
/// Not handled.
pub const FATAL: i32 = 15;
pub const CHILD: i32 = 17;
pub const CONT: i32 = 18;
pub const STOP: i32 = 19;

/// A handler that runs.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub signal: i32,
    pub pc: usize,
    /// The mask to be in force after it.
    mask: u64,
    /// The operation at which it was delivered, and whether that fails.
    resume: Option<(Op, bool)>,
}

/// What the handler of a signal does.
pub fn handler(signal: i32) -> &'static [Ins] {
    match signal {
        POSTS => &[Ins::Log(1010), Ins::Post(3)],
        LOCKS => &[Ins::Lock(0, How::Block), Ins::Count(0), Ins::Unlock(0)],
        ALARM => &[Ins::Log(1014)],
        _ => &[Ins::Log(1017)],
    }
}

pub fn about_signals(ins: &Ins) -> bool {
    matches!(
        ins,
        Ins::Fd(_, On::Notify, _)
            | Ins::Kill(..)
            | Ins::Tkill(..)
            | Ins::Mask(..)
            | Ins::Suspend(_)
            | Ins::Sigwait(..)
            | Ins::Alarm(_)
    )
}

impl Run<'_> {
    pub(super) fn install_handlers(&mut self) {
        if self.program.iter().flatten().any(about_signals) {
            let process = &mut self.arena.world.procs[0];
            process.handled = bit(POSTS) | bit(LOCKS) | bit(ALARM) | bit(CHILD);
            process.restarts = bit(LOCKS);
        }
    }

    /// What comes of a signal or timer once its operation has been performed.
    pub(super) fn sends(&mut self, t: Tid, op: &Op) {
        let target = match (op.kind, self.instruction(t)) {
            (Kind::KILL, Some(&Ins::Tkill(n, _))) => self.started[n].expect("a thread"),
            (Kind::TIMER, Some(&Ins::Alarm(ms))) => {
                let world = &mut self.arena.world;
                let at = world.itimer(op.obj, vsrun_model::timer::ITIMER).expect("room");
                world.timers[at].deadline = vsrun_model::world::START + u64::from(ms) * 1_000_000;
                return world.fire_timers();
            }
            (Kind::KILL, _) => NONE,
            _ => return,
        };
        self.send(t, op.obj, target, op.arg as i32);
    }

    /// `t` sends a signal to process `p`, or to one of its threads.
    pub(super) fn send(&mut self, t: Tid, p: Pid, target: Tid, signal: i32) {
        let world = &mut self.arena.world;
        let gone = target != NONE && !world.threads[target].alive();
        if world.procs[p].state != vsrun_model::ProcState::LIVE || gone {
            return;
        }
        match world.send(t, p, target, SigInfo { signal, ..SigInfo::default() }) {
            Sent::Done | Sent::NoRoom | Sent::Refused | Sent::LosesData => {}
            Sent::Stops => {
                world.stop_and_tell(p, signal, t);
            }
            Sent::Kills => world.kill(p, signal),
        }
    }

    /// A process is over: its parent is told.
    pub(super) fn child_over(&mut self, p: Pid) {
        self.arena.world.child_over(p);
    }

    pub(super) fn mask(&mut self, t: Tid, signal: i32, blocks: bool) {
        let mask = self.arena.world.threads[t].sigmask;
        self.arena.world.set_mask(t, if blocks { mask | bit(signal) } else { mask & !bit(signal) });
        self.deliver(t);
    }

    /// `op` of `t` fails. What the last wait for events has given is another one's.
    pub(super) fn interrupted(&mut self, t: Tid, op: &Op) {
        self.arena.world.delivered.clear();
        self.returned(t, op, EINTR);
    }

    /// `t` has taken a signal: its handler begins, and those of others that are due.
    pub(super) fn handle(&mut self, t: Tid, resume: Option<(Op, bool)>) {
        let thread = &mut self.arena.world.threads[t];
        let (signal, mask) = (thread.taken.signal, thread.sigmask);
        if let Some((Op { kind: Kind::SIGSUSPEND, arg, .. }, true)) = resume {
            thread.sigmask = arg as u64;
        }
        thread.sigmask |= bit(signal);
        self.fibers[t as usize].frames.push(Frame { signal, pc: 0, mask, resume });
        self.deliver(t);
    }

    /// Handlers of signals that are due begin.
    pub(super) fn deliver(&mut self, t: Tid) {
        let world = &mut self.arena.world;
        if !world.threads[t].alive() || world.threads[t].state == vsrun_model::ThreadState::PARKED {
            return;
        }
        let due = world.due(t);
        if world.take(t, due) {
            if handled(world.threads[t].taken.signal) {
                return self.handle(t, None);
            }
            // It was blocked when it was sent.
            let (p, signal) = (world.threads[t].pid, world.threads[t].taken.signal);
            world.did = world.did.with(Effects::EXITS);
            world.kill(p, signal);
        }
    }

    /// The innermost handler of `t` is over. True: `t` is parked again.
    pub(super) fn handler_returns(&mut self, t: Tid) -> bool {
        let frame = self.fibers[t as usize].frames.pop().expect("a handler");
        self.arena.world.threads[t].sigmask = frame.mask;
        let due = self.arena.world.due(t);
        if let (true, Some(resume)) = (due != 0, frame.resume) {
            // Before what was interrupted goes on.
            self.arena.world.take(t, due);
            let plain = Op { kind: Kind::NONE, ..resume.0 };
            self.handle(t, Some((if resume.0.kind == Kind::SIGSUSPEND { plain } else { resume.0 }, resume.1)));
            let frames = &mut self.fibers[t as usize].frames;
            let at = frames.iter().rposition(|f| f.resume.is_some()).expect("the one just begun");
            frames[at].resume = Some(resume);
            return false;
        }
        match frame.resume {
            None => self.deliver(t),
            Some((op, true)) => self.interrupted(t, &op),
            Some((op, false)) => {
                let anew = match self.instruction(t) {
                    Some(Ins::FutexWaitv([word, _], ..)) if op.kind == Kind::FUTEX_WAITV_SLEEP => {
                        let obj = self.objects.futex[*word as usize];
                        Op { kind: Kind::FUTEX_WAITV, obj, obj2: NONE, ..op }
                    }
                    _ => Op { kind: Kind::FUTEX_WAIT, ..op },
                };
                self.arena.world.resume_at(t, op, anew);
                return true;
            }
        }
        false
    }
}

fn handled(signal: i32) -> bool {
    matches!(signal, POSTS | LOCKS | ALARM | CHILD)
}
