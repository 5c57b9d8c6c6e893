//! What the tests of this directory share: small worlds, and made-up reports.

use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};
use std::ops::{Deref, DerefMut};

use vsrun_model::object::NONE;
use vsrun_model::{Applied, Kind, ObjId, ObjKind, Op, Tid, Uid};

use super::{Bug, BugKind, CycleLink, Details, StepView, Summary, ThreadStatus, ThreadView, Verdict};
use crate::scenario::{Found, Options, Program, Scenario, ScenarioStep, Shown, Then};
use crate::schedule::Schedule;

/// A world on the heap, where there is room for it.
pub struct World(Box<vsrun_model::World>);

impl World {
    /// One process with one thread.
    pub fn new() -> World {
        let layout = Layout::new::<vsrun_model::World>();
        // SAFETY: the layout is not empty and is the one of the box; zero bytes are a valid World (the model's rule).
        let mut world = unsafe {
            let memory = alloc_zeroed(layout).cast::<vsrun_model::World>();
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(memory)
        };
        world.reset();
        world.create_process(NONE).unwrap();
        World(world)
    }

    /// One process with a first thread and `n` more, all parked at nothing yet.
    pub fn with_threads(n: u32) -> World {
        let mut world = World::new();
        for _ in 0..n {
            world.create_thread(0, 0).unwrap();
        }
        world
    }

    /// An object in the private memory of the first process.
    pub fn object(&mut self, kind: ObjKind, addr: u64) -> ObjId {
        self.object_at(0, kind, addr, 0).unwrap()
    }

    /// `t` reaches `op` and performs it in alternative `value`; it must be enabled.
    pub fn run(&mut self, t: Tid, op: Op, value: u32) -> Applied {
        self.publish(t, op);
        assert!(self.choices(t) > value, "{op:?} is not enabled");
        self.perform(t, value)
    }
}

impl Deref for World {
    type Target = vsrun_model::World;
    fn deref(&self) -> &vsrun_model::World {
        &self.0
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut vsrun_model::World {
        &mut self.0
    }
}

/// Thread 1 locks the mutex at `order.0` then `order.1`, thread 2 the other way round: a circle. The mutexes at `met` are
/// made first, in that order.
pub fn crossed_locks(met: &[u64], order: (u64, u64)) -> World {
    let mut world = World::with_threads(2);
    for &addr in met {
        world.object(ObjKind::MUTEX, addr);
    }
    let (a, b) = (world.object(ObjKind::MUTEX, order.0), world.object(ObjKind::MUTEX, order.1));
    world.publish(0, Op::on(Kind::JOIN, 1));
    world.run(1, Op::on(Kind::MUTEX_LOCK, a), 0);
    world.run(2, Op::on(Kind::MUTEX_LOCK, b), 0);
    world.publish(1, Op::on(Kind::MUTEX_LOCK, b));
    world.publish(2, Op::on(Kind::MUTEX_LOCK, a));
    world
}

/// A bug with nothing known about it.
pub fn bug(kind: BugKind) -> Bug {
    Bug { kind, summary: "x".into(), scenario: None, execution: 1, transitions: 1, details: Details::default() }
}

/// One transition.
pub fn step(n: u64, thread: &str, op: &str) -> StepView {
    StepView { n, thread: thread.into(), op: op.into(), ..StepView::default() }
}

/// A thread that waits for a lock.
pub fn waiting(thread: &str, wants: &str, other: &str, has: &str) -> ThreadView {
    ThreadView {
        thread: thread.into(),
        vpid: 1001,
        program: "prog".into(),
        start: "worker".into(),
        status: ThreadStatus::Waiting,
        frames: vec!["worker+0x2d (prog)".into(), "start_thread+0x304 (libc.so.6)".into()],
        pending: Some(format!("pthread_mutex_lock({wants})")),
        holds: vec![has.into()],
        waits_for: vec![format!("{wants}, held by thread {other}")],
    }
}

/// Two threads that took two locks in different order.
pub fn deadlock() -> Bug {
    let link = |thread: &str, object: &str| CycleLink { thread: thread.into(), object: Some(object.into()) };
    let main = ThreadView {
        start: String::new(),
        holds: vec![],
        pending: Some("pthread_join(0.1)".into()),
        ..waiting("0", "", "", "")
    };
    let main =
        ThreadView { waits_for: vec!["the end of thread 0.1".into()], frames: vec!["main+0x40 (prog)".into()], ..main };
    let over = ThreadView { status: ThreadStatus::Exited, ..waiting("0.3", "", "", "") };
    Bug {
        kind: BugKind::Deadlock,
        summary: "2 threads wait for each other".into(),
        scenario: Some("prog-deadlock-1.vsrun.json".into()),
        execution: 3,
        transitions: 2,
        details: Details {
            threads: vec![
                main,
                waiting("0.1", "lock_b", "0.2", "lock_a"),
                waiting("0.2", "lock_a", "0.1", "lock_b"),
                over,
            ],
            cycle: Some(vec![link("0.1", "lock_b"), link("0.2", "lock_a")]),
            signal: None,
            steps: vec![step(1, "0.1", "pthread_mutex_lock(lock_a)"), step(2, "0.2", "pthread_mutex_lock(lock_b)")],
        },
    }
}

/// A complete exploration without a bug.
pub fn summary() -> Summary {
    Summary {
        program: vec!["./prog".into(), "2".into()],
        verdict: Verdict::Ok,
        bugs: Vec::new(),
        complete: true,
        incomplete_reason: None,
        search: "dpor".into(),
        executions: 30,
        transitions: 200,
        sleep_blocked: 4,
        traces: None,
        trace: None,
        max_depth: 9,
        workers: 1,
        seconds: 0.2,
        program_status: None,
        notes: Vec::new(),
        passed_calls: vec![("read".into(), 3), ("poll".into(), 1)],
        with: Vec::new(),
    }
}

/// A scenario of three steps.
pub fn scenario() -> Scenario {
    use std::os::unix::ffi::OsStringExt;
    let step = |n, op, value, text: &str| ScenarioStep {
        thread: Uid::MAIN.child(n),
        op,
        value,
        alternatives: value + 1,
        text: text.into(),
    };
    Scenario {
        program: Program {
            script: Default::default(),
            exe: "/bin/prog".into(),
            argv: vec!["./prog".into(), "a b".into(), std::ffi::OsString::from_vec(vec![0xff])],
            cwd: "/tmp".into(),
            env: vec![],
        },
        fingerprint: serde_json::Value::Null,
        options: Options {
            timeouts_any: true,
            inject: 0,
            allow_misuse: false,
            livelock: 9,
            fail_on_exit: false,
            real_files: false,
            with: Vec::new(),
            stop_signal: 0,
            divergence_timeout_ms: 500,
            max_depth: None,
            seed: 7,
            stdin: "null".into(),
        },
        bug: Shown { kind: BugKind::Deadlock, summary: "2 threads wait for each other".into(), identity: 1 },
        found: Found { search: "dpor".into(), execution: 3 },
        steps: vec![
            step(1, Kind::MUTEX_LOCK, 0, "pthread_mutex_lock(lock_a)"),
            step(2, Kind::MUTEX_LOCK, 0, "pthread_mutex_lock(lock_b)"),
            step(1, Kind::TOSS, 1, "VS_toss(2) = 1"),
        ],
        then: Some(Then::new(&Schedule::default())),
        objects: Default::default(),
    }
}
