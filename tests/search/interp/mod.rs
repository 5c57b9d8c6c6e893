//! A mini interpreter of model programs: threads that are lists of model operations, run directly on an [`Arena`] by
//! the protocol that the shim follows. It stands for the runtime in the tests of the search.
#![allow(dead_code)]

pub mod bounds;
pub mod brute;
pub mod contents;
pub mod digest;
pub mod events;
pub mod generate;
mod instructions;
pub mod numbers;
mod program;
pub mod signals;
pub mod sockets;
pub mod unshared;

pub use program::{File, How, Ins, Program};

use std::hash::Hash;

use memmap2::{MmapMut, MmapOptions};
use vsrun::race::{Access, Note};
use vsrun::schedule::{Schedule, States};
use vsrun::search::Search;
use vsrun::trace::Trace;
use vsrun_model::arena::{Choice, Plan};
use vsrun_model::errno::EINTR;
use vsrun_model::futex::Several;
use vsrun_model::kind::Alone;
use vsrun_model::lock::{self, by_description};
use vsrun_model::memory::{Found, ATOMIC, COMPARES};
use vsrun_model::msg::{Queue, EXCEPT, SET_SIZE};
use vsrun_model::object::{MUTEX_ERRORCHECK, MUTEX_RECURSIVE, PREFER_WRITER, ROBUST, SHARED};
use vsrun_model::op::{pack_semops, CANCEL_POINT, SEVERAL, TIMED, TRY, VARIANT};
use vsrun_model::states::Mixer;
use vsrun_model::stream::EXPLICIT;
use vsrun_model::world::START;
use vsrun_model::{Applied, Arena, Decision, End, Key, Kind, ObjKind, Op, Pid, SemBuf, ThreadState, Tid, NONE};
use vsrun_model::{IPC_NOWAIT, SEM_UNDO};

/// An interpreter with an arena of its own; made once per test thread.
pub struct Machine {
    map: MmapMut,
    /// Operations on objects that one thread alone uses are no transitions.
    pub unshared: bool,
    /// Timeouts fire whenever they could.
    pub timeouts_any: bool,
    /// Variables whose accesses are operations, a bit for each; those of the others are noted.
    pub watched: u32,
    /// What the last execution did to variables that are not watched.
    pub notes: Vec<Note>,
    /// Operations take no time, and nobody gives way.
    pub timeless: bool,
    /// Traces tell what each transition did to variables that locks protect.
    pub by_step: bool,
}

impl Machine {
    pub fn new() -> Machine {
        let map = MmapOptions::new().len(std::mem::size_of::<Arena>()).no_reserve_swap().map_anon();
        let mut machine = Machine {
            map: map.expect("address space for an arena"),
            unshared: false,
            timeouts_any: false,
            watched: (1 << VARIABLES) - 1,
            notes: Vec::new(),
            timeless: false,
            by_step: false,
        };
        machine.arena().init();
        machine
    }

    pub fn arena(&mut self) -> &mut Arena {
        // SAFETY: the mapping is page-aligned, as large as an Arena, private to this Machine and borrowed for as long
        // as the reference lives; an Arena is plain data of which zero bytes, which the mapping starts with, are a
        // valid value.
        #[allow(unsafe_code)]
        unsafe {
            &mut *self.map.as_mut_ptr().cast::<Arena>()
        }
    }

    /// One execution, and how the world looks at its end.
    pub fn run(&mut self, program: &Program, schedule: &Schedule, max_depth: u64) -> (Trace, digest::Outcome) {
        self.try_run(program, schedule, max_depth).expect("a schedule that fits")
    }

    /// The same with a schedule that may be longer than an arena has room for.
    pub fn try_run(
        &mut self,
        program: &Program,
        schedule: &Schedule,
        max_depth: u64,
    ) -> Result<(Trace, digest::Outcome), &'static str> {
        let (unshared, timeouts_any, watched, by_step) = (self.unshared, self.timeouts_any, self.watched, self.by_step);
        let timeless = self.timeless;
        let arena = self.arena();
        arena.world.reset();
        arena.files.reset();
        arena.world.timeouts_any = timeouts_any;
        let mut plan = Plan::default();
        (plan.policy, plan.seed, plan.record, plan.max_depth) =
            (schedule.policy, schedule.seed, schedule.record, max_depth);
        plan.pct_fair = schedule.pct_fair;
        (plan.record_back, plan.past_cycles) = (schedule.record_back, schedule.past_cycles);
        plan.wake_by_effects = schedule.wake_by_effects;
        plan.expected_effects = schedule.expected_effects;
        plan.late_wake = schedule.late_wake;
        plan.unshared = unshared;
        plan.states = schedule.states != States::Off;
        plan.timeless = timeless;
        (plan.timed, plan.untold) = (schedule.timed, schedule.untold.map_or(0, |at| at + 1));
        plan.loops = schedule.loops.map_or(0, |at| at + 1);
        arena.prepare(plan, &schedule.prefix, &schedule.sleep)?;
        arena.guide(&schedule.guide);
        arena.expect(&schedule.expected);
        arena.aim(&schedule.interest, &schedule.wishes);
        if plan.states {
            arena.visited.begin(schedule.ticket, schedule.states == States::Begin);
        }
        let mut run = Run::new(program, arena, watched);
        run.by_step = by_step;
        run.go();
        let outcome = run.outcome();
        let (mut trace, notes) = (Trace::read(run.arena), run.notes);
        if by_step {
            trace.touched = vsrun::race::by_step(trace.steps.len(), notes.iter().copied());
        }
        self.notes = notes;
        Ok((trace, outcome))
    }

    /// Runs the choices of `prefix` and nothing more.
    pub fn run_prefix(&mut self, program: &Program, prefix: &[Choice]) -> (Trace, digest::Outcome) {
        let schedule = Schedule { prefix: prefix.to_vec(), record: true, ..Schedule::default() };
        self.run(program, &schedule, prefix.len() as u64)
    }

    /// Everything that a search explores: outcomes and executions. `None`: more than `limit` executions.
    pub fn explore(
        &mut self,
        program: &Program,
        search: &mut dyn Search,
        limit: u64,
    ) -> Option<(digest::Outcomes, u64)> {
        let mut outcomes = digest::Outcomes::new();
        let mut executions = 0;
        while let Some(schedule) = search.next() {
            executions += 1;
            if executions > limit {
                return None;
            }
            let (trace, outcome) = self.run(program, &schedule, u64::MAX);
            assert_ne!(trace.end, End::MISMATCH, "a schedule that does not match: {schedule:?}");
            let blocked = search.sleep_blocked();
            search.done(schedule.ticket, &trace);
            // An execution that ran into what sleeps is no part of what is explored, though it may have gone on.
            if !matches!(trace.end, End::SLEEP_BLOCKED | End::MET) && search.sleep_blocked() == blocked {
                outcomes.insert(outcome.text);
            }
        }
        Some((outcomes, executions))
    }
}

/// A value where variable `v` lies in its word: two of them share one.
fn half(v: u32, value: i64) -> u64 {
    (value as u32 as u64) << (32 * (v % 2))
}

fn on_memory(kind: Kind, objects: &Objects, v: u32) -> Op {
    Op { mask: 0xf << (4 * (v % 2)), ..Op::on(kind, objects.memory[v as usize / 2]) }
}

/// What the interpreter keeps of a thread.
#[derive(Clone, Debug, Default)]
pub struct Fiber {
    /// Which list of instructions it runs.
    pub code: usize,
    pub pc: usize,
    pub log: Vec<i64>,
    /// Handlers that run, the innermost last.
    pub frames: Vec<signals::Frame>,
    /// Its end has been a place to switch.
    pub ending: bool,
    /// What it saw last in the variables that nothing protects.
    pub seen: [i64; VARIABLES],
}

/// The indices of the objects of a run, by kind and number.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub mutex: Vec<u32>,
    pub cond: Vec<u32>,
    pub sem: Vec<u32>,
    pub rwlock: Vec<u32>,
    pub spin: Vec<u32>,
    pub barrier: Vec<u32>,
    pub stream: Vec<u32>,
    pub sequence: u32,
    pub futex: Vec<u32>,
    pub once: Vec<u32>,
    pub sysv: u32,
    pub msgq: Vec<u32>,
    pub records: Vec<u32>,
    pub flock: Vec<u32>,
    pub file: Vec<u32>,
    pub paths: u32,
    pub number: Vec<u32>,
    pub free: u32,
    pub memory: Vec<u32>,
}

/// Flavours of the mutexes by number.
pub const MUTEXES: [u32; 5] = [0, 0, MUTEX_RECURSIVE, MUTEX_ERRORCHECK, ROBUST];
/// First values of the POSIX semaphores.
pub const SEMS: [i32; 4] = [0, 1, 2, 0];
/// First values of the SysV semaphores.
pub const SYSV: [i32; 9] = [1, 1, 1, 1, 1, 0, 1, 1, 1];

/// Variables that nothing protects.
pub const VARIABLES: usize = 3;
/// Sizes of the message queues, bytes and messages.
pub const QUEUES: [u64; 2] = [2, 3];

/// One execution.
pub struct Run<'a> {
    pub program: &'a Program,
    pub arena: &'a mut Arena,
    pub objects: Objects,
    /// By thread index.
    pub fibers: Vec<Fiber>,
    /// The thread that runs each list of instructions.
    pub started: Vec<Option<Tid>>,
    /// Variables, one per mutex.
    pub vars: Vec<i64>,
    /// Variables, one per stream.
    pub counted: [i64; 3],
    /// Numbers drawn.
    pub drawn: i64,
    /// What is in files.
    pub contents: contents::Contents,
    /// What numbers of descriptors stand for.
    pub numbers: numbers::Table,
    /// Variables that nothing protects; which are watched, and what was done to the others.
    pub memory: [i64; VARIABLES],
    watched: u32,
    notes: Vec<Note>,
    /// What is done to variables that locks protect is noted, too.
    by_step: bool,
    /// Threads whose end has been noted.
    noted_ends: Vec<bool>,
}

fn both(kind: Kind, obj: u32, obj2: u32) -> Op {
    let mut op = Op::on(kind, obj);
    op.obj2 = obj2;
    op
}

fn sized(mut op: Op, bytes: u32) -> Op {
    op.mask = bytes;
    op
}

fn any_bit(mut op: Op) -> Op {
    op.mask = u32::MAX;
    op
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, arena: &'a mut Arena, watched: u32) -> Run<'a> {
        let (_, t) = arena.world.create_process(NONE).expect("room");
        let mut run = Run {
            program,
            arena,
            objects: Objects::default(),
            fibers: vec![Fiber::default()],
            started: vec![None; program.len()],
            vars: vec![0; MUTEXES.len()],
            counted: [0; 3],
            drawn: 0,
            contents: contents::Contents::default(),
            numbers: numbers::Table::new(),
            memory: [0; VARIABLES],
            watched,
            notes: Vec::new(),
            by_step: false,
            noted_ends: Vec::new(),
        };
        run.started[0] = Some(t);
        run.make_objects();
        run.install_handlers();
        if events::uses(program) {
            run.make_descriptors();
        }
        if sockets::uses(program) {
            run.make_sockets();
        }
        run
    }

    fn make(&mut self, kind: ObjKind, n: usize, flags: u32, value: i32, count: u32) -> u32 {
        let made = self.arena.world.make(Key::new(SHARED, kind, n as u64 * 64), |new| {
            new.flags = flags;
            new.value = value;
            new.count = count;
        });
        made.expect("room")
    }

    fn make_objects(&mut self) {
        let flavours = MUTEXES.iter().enumerate();
        self.objects.mutex = flavours.map(|(i, &f)| self.make(ObjKind::MUTEX, i, f, 0, 0)).collect();
        self.arena.world.any_robust = true;
        self.objects.cond = (0..2).map(|i| self.make(ObjKind::COND, i, 0, 0, 0)).collect();
        let values = SEMS.iter().enumerate();
        self.objects.sem = values.map(|(i, &v)| self.make(ObjKind::SEM, i, 0, v, 0)).collect();
        self.objects.rwlock =
            vec![self.make(ObjKind::RWLOCK, 0, 0, 0, 0), self.make(ObjKind::RWLOCK, 1, PREFER_WRITER, 0, 0)];
        self.objects.spin = vec![self.make(ObjKind::SPIN, 0, 0, 0, 0)];
        self.objects.barrier = (0..2).map(|i| self.make(ObjKind::BARRIER, i, 0, 0, 2 + i as u32)).collect();
        self.objects.stream = (0..3).map(|i| self.make(ObjKind::STREAM, i, 0, 0, 0)).collect();
        self.objects.sequence = self.make(ObjKind::LIBC, 0, 0, 0, 0);
        self.objects.futex = (0..2).map(|i| self.make(ObjKind::FUTEX, i, 0, 0, 0)).collect();
        self.objects.once = vec![self.make(ObjKind::ONCE, 0, 0, 0, 0)];
        self.objects.sysv = self.arena.world.sysv_make(7, SYSV.len() as u32).expect("room");
        self.objects.records = (0..2).map(|i| self.make(ObjKind::RECORDS, i, 0, 0, 0)).collect();
        self.objects.flock = (0..2).map(|i| self.make(ObjKind::FLOCK, i, 0, 0, 0)).collect();
        self.objects.file = (0..contents::FILES).map(|i| self.make(ObjKind::FILE, i, 0, 0, 0)).collect();
        self.objects.paths = self.make(ObjKind::PATHS, 0, 0, 0, 0);
        let number = |i| self.make(ObjKind::DESCRIPTOR, i, 0, 0, 0);
        self.objects.number = (0..numbers::NUMBERS).map(number).collect();
        self.objects.free = self.make(ObjKind::DESCRIPTOR, numbers::NUMBERS, 0, 0, 0);
        self.objects.memory = (0..VARIABLES).map(|i| self.make(ObjKind::MEMORY, i, 0, 0, 0)).collect();
        for &variable in &self.objects.memory {
            self.arena.world.objects[variable].set_content(0);
        }
        let queue = |limit| Queue { limit, ..Queue::default() };
        let world = &mut self.arena.world;
        let made = |(i, &limit): (usize, &u64)| world.queue_make(ObjKind::MSGQ, i as u64 * 64, queue(limit));
        self.objects.msgq = QUEUES.iter().enumerate().map(made).map(|made| made.expect("room")).collect();
        for (i, &value) in SYSV.iter().enumerate() {
            self.arena.world.sysv_set(0, self.objects.sysv, i as u32, value);
        }
    }

    fn ended(&self) -> bool {
        self.arena.world.end != End::RUNNING
    }

    fn go(&mut self) {
        self.advance(0);
        while !self.ended() {
            if self.arena.world.goes_alone(0, true) {
                self.perform(0, 0);
                continue;
            }
            self.note_ends();
            if self.arena.is_to_tell_state() {
                let memory = self.memory();
                self.arena.comes_to_state(Some(memory));
            }
            match self.arena.step() {
                Decision::Run(t) => {
                    self.notes.push(Note::Step { index: self.arena.taken as u32 - 1 });
                    self.perform(t, self.arena.world.value);
                }
                Decision::Ended => break,
            }
        }
    }

    /// A hash of all that the world does not know of.
    fn memory(&self) -> [u64; 2] {
        let parts = (&self.fibers, &self.started, &self.vars, self.counted, self.drawn);
        let text = format!("{parts:?} {:?} {:?} {:?}", self.contents, self.numbers, self.memory);
        let mut mixer = Mixer::default();
        text.hash(&mut mixer);
        mixer.digest()
    }

    fn note_ends(&mut self) {
        let threads = &self.arena.world.threads;
        self.noted_ends.resize(threads.len as usize, false);
        for (t, noted) in self.noted_ends.iter_mut().enumerate() {
            if !*noted && !threads[t as Tid].alive() {
                *noted = true;
                self.notes.push(Note::Ends { thread: t as Tid });
            }
        }
    }

    /// `t` touches a variable that is not watched. What nobody else is there for is no race.
    fn touch(&mut self, t: Tid, variable: u32, write: bool, locked: bool) {
        if !self.arena.world.concurrent {
            return;
        }
        let site = self.fibers[t as usize].code as u32 * 1000 + self.fibers[t as usize].pc as u32;
        let address = u64::from(variable) * 64;
        let access = Access { space: 0, address, size: 8, write, locked, site };
        self.notes.push(Note::Touches { thread: t, access });
    }

    /// `t` uses a variable that a lock protects: of mutex or stream `n`.
    fn uses_protected(&mut self, t: Tid, (stream, n): (bool, u32), write: bool) {
        if self.by_step {
            let address = (1 << 16) + (u64::from(stream) << 12) + u64::from(n) * 64;
            let access = Access { space: SHARED, address, size: 8, write, locked: false, site: 0 };
            self.notes.push(Note::Touches { thread: t, access });
        }
    }

    /// Gives what is logged of it.
    fn access(&mut self, ins: &Ins) -> Vec<i64> {
        match *ins {
            Ins::Load(v) => vec![self.memory[v as usize]],
            Ins::Store(v, value) => {
                self.memory[v as usize] = value;
                Vec::new()
            }
            Ins::Update(v) | Ins::Await(v, _, true) => {
                self.memory[v as usize] += 1;
                vec![self.memory[v as usize] - 1]
            }
            Ins::Swap(v, expected, new) => {
                let found = self.memory[v as usize];
                if found == expected {
                    self.memory[v as usize] = new;
                }
                vec![found]
            }
            Ins::Await(v, _, false) => vec![self.memory[v as usize]],
            _ => Vec::new(),
        }
    }

    /// Performs the pending operation of `t` and runs it up to its next one.
    fn perform(&mut self, t: Tid, value: u32) {
        let op = self.arena.world.threads[t].pending;
        if let Some(Ins::FutexWait(_, compare, _)) = self.instruction(t) {
            let compare = *compare;
            self.arena.world.threads[t].compare = compare;
        }
        if let Some(&Ins::FutexWaitv(words, equal, _)) = self.instruction(t) {
            let words = words.map(|word| self.objects.futex[word as usize]);
            if let Some(at) = self.arena.world.compares_word(t) {
                if at == 0 {
                    self.arena.world.set_words(t, &words);
                }
                self.arena.world.threads[t].compare = equal[at];
            }
        }
        if matches!(op.kind, Kind::FUTEX_REQUEUE) {
            self.arena.world.threads[t].compare = true;
        }
        match self.arena.world.perform(t, value) {
            // A stop, without a handler.
            Applied::Signalled(true) if self.arena.world.threads[t].taken.signal == 0 => {
                self.interrupted(t, &op);
                self.deliver(t);
                if self.arena.world.threads[t].alive() {
                    self.advance(t);
                }
            }
            Applied::Signalled(false) if self.arena.world.threads[t].taken.signal == 0 => {
                self.arena.world.resume(t, op);
            }
            // Another process has killed its own.
            Applied::Signalled(_) if self.arena.world.procs[self.pid(t)].dying != 0 => {
                let (p, signal) = (self.pid(t), self.arena.world.threads[t].taken.signal);
                self.arena.world.did = self.arena.world.did.with(vsrun_model::Effects::EXITS);
                self.arena.world.kill(p, signal);
            }
            Applied::Signalled(fails) => {
                self.handle(t, Some((op, fails)));
                self.advance(t);
            }
            Applied::Done(result) => {
                self.returned(t, &op, result);
                self.deliver(t);
                if self.arena.world.threads[t].alive() {
                    self.advance(t);
                }
            }
            Applied::Parked | Applied::Ended => {}
        }
    }

    fn returned(&mut self, t: Tid, op: &Op, result: i64) {
        if op.kind == Kind::END {
            return self.ends(t);
        }
        if op.kind == Kind::THREAD_EXIT {
            return self.over(t);
        }
        if op.kind == Kind::FD_CLOSE_ALL {
            return self.leave(t, true);
        }
        if op.kind == Kind::EXIT && op.has(VARIANT) {
            return self.exit(t, true);
        }
        if op.kind == Kind::EXIT {
            self.child_over(self.pid(t));
        }
        if self.ended() || !self.arena.world.threads[t].alive() {
            return;
        }
        if op.kind == Kind::STOPPED {
            return;
        }
        let mut result = result;
        if let Some(uses) = self.instruction(t).and_then(contents::uses_of) {
            // What it does to names may be something else than when it was published.
            if self.arena.plan.unshared {
                self.is_visible_use(t, uses);
            }
            result = self.use_contents(t, uses);
            self.after_use(t, op, result);
        }
        if let Some(num) = self.instruction(t).and_then(numbers::number_of) {
            result = self.use_numbers(t, num);
        }
        self.sends(t, op);
        if self.ended() || !self.arena.world.threads[t].alive() {
            return;
        }
        if op.kind == Kind::FORK {
            if let Some(Ins::Fork(code)) = self.instruction(t) {
                self.start(t, *code, true);
            }
        }
        let more = match self.instruction(t).cloned() {
            Some(Ins::Fd(..)) if matches!(op.kind, Kind::MQ_SEND | Kind::MQ_RECEIVE) => {
                self.after_message(t, op, result)
            }
            Some(ins @ Ins::Fd(..)) => self.after_descriptor(t, &ins, op),
            Some(ins @ Ins::Sock(..)) => self.after_socket(t, &ins, result),
            Some(ins @ (Ins::Load(v) | Ins::Store(v, _) | Ins::Update(v) | Ins::Swap(v, ..) | Ins::Await(v, ..))) => {
                let more = self.access(&ins);
                self.fibers[t as usize].seen[v as usize] = self.memory[v as usize];
                let of_word = (v / 2 * 2..VARIABLES as u32).take(2).map(|v| half(v, self.memory[v as usize]));
                self.arena.world.content_is(self.objects.memory[v as usize / 2], of_word.sum());
                more
            }
            _ => Vec::new(),
        };
        let out = self.arena.world.threads[t].out[0];
        let again = matches!(self.instruction(t), Some(Ins::WaitWhile(..)));
        let fiber = &mut self.fibers[t as usize];
        match fiber.frames.last_mut() {
            Some(frame) => frame.pc += 1,
            None => fiber.pc += usize::from(!again),
        }
        let shown = match op.kind {
            // Which of the descriptions it is depends on the order in which they were made.
            Kind::FD_ACCEPT => result.min(0),
            Kind::BARRIER_WAIT | Kind::BARRIER_WAKE if op.has(VARIANT) => 0,
            _ => result,
        };
        fiber.log.push(shown);
        fiber.log.extend(more);
        match op.kind {
            Kind::SEM_GET | Kind::FUTEX_WAKE | Kind::FUTEX_REQUEUE => fiber.log.push(out),
            Kind::WAIT if result == 0 => {
                let child = self.arena.world.procs.as_slice().iter().find(|p| p.vpid as i64 == out).expect("a child");
                let code = self.fibers[child.main_thread as usize].code;
                self.fibers[t as usize].log.push(code as i64);
            }
            Kind::RECORD_TEST => {
                let [what, first, last] = self.arena.world.threads[t].out;
                fiber.log.extend([what & 0xff, first, last]);
            }
            Kind::MSG_RECEIVE if result == 0 => {
                fiber.log.extend(&self.arena.world.threads[t].out[..2]);
                self.arena.world.unstage(t, &mut []);
            }
            Kind::ONCE if result == 1 => fiber.pc += 1,
            Kind::LIBC_USE => {
                fiber.log.push(self.drawn);
                self.drawn += 1;
            }
            _ => {}
        }
        if result == EINTR && op.has(CANCEL_POINT) {
            self.fibers[t as usize].pc = usize::MAX;
        }
    }

    fn instruction(&self, t: Tid) -> Option<&Ins> {
        let fiber = &self.fibers[t as usize];
        match fiber.frames.last() {
            Some(frame) => signals::handler(frame.signal).get(frame.pc),
            None => self.program[fiber.code].get(fiber.pc),
        }
    }

    /// Runs `t` up to its next visible operation, or its end.
    fn advance(&mut self, t: Tid) {
        while !self.ended() && self.arena.world.threads[t].alive() {
            if self.arena.world.procs[self.pid(t)].stopped != 0 {
                return self.arena.world.publish(t, Op::new(Kind::STOPPED));
            }
            let Some(ins) = self.instruction(t).cloned() else {
                if self.fibers[t as usize].frames.is_empty() {
                    return self.finish(t);
                }
                if self.handler_returns(t) {
                    return;
                }
                continue;
            };
            if let Some(op) = self.visible(t, &ins) {
                let uses = contents::uses_of(&ins).filter(|_| self.arena.plan.unshared);
                if uses.is_some_and(|uses| !self.is_visible_use(t, uses)) {
                    self.returned(t, &op, 0);
                    continue;
                }
                let num = numbers::number_of(&ins).filter(|_| self.arena.plan.unshared);
                if num.is_some_and(|num| !self.is_visible_number(t, num)) {
                    self.returned(t, &op, 0);
                    continue;
                }
                // Where all is visible, streams are too: nobody starts over here with what is noted.
                let of_libc = matches!(op.kind.row().alone, Alone::OfLibc) && !self.arena.plan.unshared;
                match if of_libc { None } else { self.arena.pass(t, &op) } {
                    None => return self.arena.world.publish(t, op),
                    Some(Applied::Done(result)) => {
                        self.returned(t, &op, result);
                        self.deliver(t);
                    }
                    Some(_) => return,
                }
                continue;
            }
            if ins == Ins::Exit {
                return self.exit(t, true);
            }
            match self.fibers[t as usize].frames.last_mut() {
                Some(frame) => frame.pc += 1,
                None => self.fibers[t as usize].pc += 1,
            }
            self.invisible(t, &ins);
        }
    }

    /// The end of the instructions of `t`.
    fn finish(&mut self, t: Tid) {
        if !self.fibers[t as usize].ending && self.ends_visibly(t) {
            self.fibers[t as usize].ending = true;
            return self.arena.world.publish(t, Op::new(Kind::END));
        }
        self.ends(t);
    }

    /// In every second program in which somebody may tell when a thread or process ends, ends are places to switch: all of them, or
    /// where objects may be own, those that somebody can tell. Always where there are streams, which pass also where somebody
    /// can tell the end, so that no visible operation may be left.
    fn ends_visibly(&mut self, t: Tid) -> bool {
        let all = || self.program.iter().flatten();
        let tells = |ins: &Ins| matches!(ins, Ins::Join(_, how) | Ins::Wait(_, how) if *how != How::Block);
        let by_signal = || all().any(|ins| matches!(ins, Ins::Fork(_))) && all().any(signals::about_signals);
        (all().count() % 2 == 1 || all().any(|ins| matches!(ins, Ins::Stream(..))))
            && (all().any(tells) || by_signal())
            && self.arena.world.concurrent
            && (!self.arena.plan.unshared || self.arena.is_watched(t))
    }

    fn ends(&mut self, t: Tid) {
        self.arena.hold_streams(t);
        let world = &mut self.arena.world;
        if world.holds_robust(t) {
            world.publish(t, Op::new(Kind::THREAD_EXIT));
        } else {
            self.over(t);
        }
    }

    fn over(&mut self, t: Tid) {
        let world = &mut self.arena.world;
        match world.procs[world.threads[t].pid].live_threads {
            1 => self.exit(t, false),
            _ => world.thread_exit(t),
        }
    }

    fn exit(&mut self, t: Tid, called: bool) {
        let world = &mut self.arena.world;
        let pid = world.threads[t].pid;
        if world.procs[pid].live_threads <= 1 {
            // Where nothing is taken to be unshared every place to switch is one.
            let watched = !self.arena.plan.unshared || self.arena.is_watched(t);
            let world = &mut self.arena.world;
            if let Some(op) = world.exit_part(t, watched) {
                world.exit_is_visible(pid, called);
                return world.publish(t, op);
            }
        }
        let world = &mut self.arena.world;
        if world.has_fds(pid) {
            world.exit_is_visible(pid, called);
            if world.procs[pid].live_threads <= 1 {
                let op = self.closes_all(pid);
                return self.arena.world.publish(t, op);
            }
        }
        self.leave(t, called);
    }

    /// The end of a process without descriptors, or with other threads that lose them with it.
    fn leave(&mut self, t: Tid, called: bool) {
        let world = &mut self.arena.world;
        let pid = world.threads[t].pid;
        if world.exit_is_visible(pid, called) {
            world.publish(t, Op::new(Kind::EXIT));
        } else {
            world.process_exit(pid, 0);
            self.child_over(pid);
        }
    }

    /// Starts the thread of that code, which runs up to its first visible operation.
    fn start(&mut self, t: Tid, code: usize, fork: bool) {
        let world = &mut self.arena.world;
        let new = match fork {
            true => world.fork(t).expect("room").1,
            false => {
                let pid = world.threads[t].pid;
                world.create_thread(pid, t).expect("room")
            }
        };
        let process = world.threads[new].pid;
        let parent = world.procs[process].creator;
        self.notes.push(Note::Begins { thread: new, creator: t, process, parent });
        self.started[code] = Some(new);
        self.fibers.push(Fiber { code, ..Fiber::default() });
        self.advance(new);
    }

    /// True if every live thread is parked, as the scheduler step expects.
    pub fn stands_still(&self) -> bool {
        let world = &self.arena.world;
        world.live.as_slice().iter().all(|&t| world.threads[t].state == ThreadState::PARKED)
    }
}
