//! What the tests of this directory share: made-up findings, summaries and scenarios.

use vsrun_model::{End, Kind, ObjKind, Op, Tid, Uid};

use crate::finding::{
    words, Bug, BugKind, CycleLink, Ending, Finding, ObjectView, Pending, ProcessView, StepView, Summary, Thing,
    ThreadStatus, ThreadView, Words,
};
use crate::scenario::{self, Found, Options, Program, Scenario, ScenarioStep, Then};
use crate::schedule::Schedule;

/// Objects of [`finding`].
pub const LOCK_A: u32 = 0;
pub const LOCK_B: u32 = 1;

/// Nothing but a kind.
pub fn finding(kind: BugKind) -> Finding {
    let object = |name: &str| ObjectView {
        kind: ObjKind::MUTEX,
        name: name.into(),
        bytes: Vec::new(),
        made: None,
        readers: Vec::new(),
        writers: Vec::new(),
    };
    Finding {
        kind: Some(kind),
        identity: 1,
        summary: "x".into(),
        ending: Ending::Modelled,
        end: End::FINISHED,
        code: 0,
        message: String::new(),
        signal: None,
        cycle: None,
        race: None,
        gone: None,
        threads: Vec::new(),
        processes: vec![ProcessView { vpid: 1001, program: "prog".into(), ..ProcessView::default() }],
        objects: vec![object("lock_a"), object("lock_b")],
        steps: Vec::new(),
        unrecorded: 0,
        moves: 0,
        tosses: false,
        touches: Vec::new(),
        touches_lost: 0,
        rounds: Vec::new(),
    }
}

/// A bug with nothing known about it.
pub fn bug(kind: BugKind) -> Bug {
    Bug { kind, summary: "x".into(), scenario: None, execution: 1, transitions: 1, finding: None, shortened: None }
}

/// One transition.
pub fn step(thread: Uid, text: impl Into<Words>) -> StepView {
    let op = Op::new(Kind::MUTEX_LOCK);
    StepView {
        thread,
        op,
        value: 0,
        alternatives: 1,
        text: text.into(),
        note: None,
        woken: None,
        matters: true,
        replaced: None,
        at: None,
    }
}

/// A thread that waits for a lock.
pub fn waiting(uid: Uid, wants: u32, other: Tid, has: u32) -> ThreadView {
    let text = words!["pthread_mutex_lock(", Thing::Object(wants), ")"];
    ThreadView {
        uid,
        process: 0,
        start: "worker".into(),
        begins: None,
        given: String::new(),
        creator: (uid != Uid::MAIN).then_some(0),
        status: ThreadStatus::Waiting,
        frames: vec!["worker+0x2d (prog)".into(), "start_thread+0x304 (libc.so.6)".into()],
        pending: Some(Pending { op: Op::on(Kind::MUTEX_LOCK, wants), alternatives: 0, text }),
        holds: vec![Thing::Object(has).into()],
        waits_for: vec![words![Thing::Object(wants), ", held by thread ", Thing::Thread(other)]],
    }
}

/// Two threads that took two locks in different order.
pub fn deadlock() -> Bug {
    let child = |n| Uid::MAIN.child(n);
    let join = Pending { op: Op::on(Kind::JOIN, 1), alternatives: 0, text: "pthread_join(0.1)".into() };
    let main = ThreadView {
        start: String::new(),
        holds: vec![],
        pending: Some(join),
        waits_for: vec![words!["the end of thread ", Thing::Thread(1)]],
        frames: vec!["main+0x40 (prog)".into()],
        ..waiting(Uid::MAIN, LOCK_A, 0, LOCK_A)
    };
    let over = ThreadView { status: ThreadStatus::Exited, ..waiting(child(3), LOCK_A, 0, LOCK_A) };
    let (one, two) = (waiting(child(1), LOCK_B, 2, LOCK_A), waiting(child(2), LOCK_A, 1, LOCK_B));
    let lock = |n, lock| step(child(n), words!["pthread_mutex_lock(", Thing::Object(lock), ")"]);
    let found = Finding {
        summary: "2 threads wait for each other".into(),
        threads: vec![main, one, two, over],
        cycle: Some(vec![CycleLink { thread: 1, object: Some(LOCK_B) }, CycleLink { thread: 2, object: Some(LOCK_A) }]),
        steps: vec![lock(1, LOCK_A), lock(2, LOCK_B)],
        ..finding(BugKind::Deadlock)
    };
    Bug { scenario: Some("prog-deadlock-1.vsrun.json".into()), ..Bug::new(found, 3) }
}

/// A complete exploration without a bug.
pub fn summary() -> Summary {
    Summary {
        program: vec!["./prog".into(), "2".into()],
        search: "dpor".into(),
        executions: 30,
        transitions: 200,
        sleep_blocked: 4,
        max_depth: 9,
        workers: 1,
        rolled_back: 0,
        copied: 0,
        from_marks: 0,
        marks_without_room: 0,
        not_rolled_back: None,
        seconds: 0.2,
        passed_calls: vec![("read".into(), 3), ("poll".into(), 1)],
        ..Summary::default()
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
        note: None,
        at: None,
    };
    Scenario {
        program: Program {
            exe: "/bin/prog".into(),
            argv: vec!["./prog".into(), "a b".into(), std::ffi::OsString::from_vec(vec![0xff])],
            cwd: "/tmp".into(),
            ..Program::default()
        },
        fingerprint: serde_json::Value::Null,
        options: Options {
            timeouts_any: true,
            store_buffers: false,
            livelock: 9,
            divergence_timeout_ms: 500,
            seed: 7,
            stdin: "null".into(),
            watches: false,
            watched: false,
            ..Options::default()
        },
        bug: scenario::Shown { kind: BugKind::Deadlock, summary: "2 threads wait for each other".into(), identity: 1 },
        found: Found { search: "dpor".into(), execution: 3, shortened: None },
        people: Default::default(),
        steps: vec![
            step(1, Kind::MUTEX_LOCK, 0, "pthread_mutex_lock(lock_a)"),
            step(2, Kind::MUTEX_LOCK, 0, "pthread_mutex_lock(lock_b)"),
            step(1, Kind::TOSS, 1, "VS_toss(2) = 1"),
        ],
        then: Some(Then::new(&Schedule::default())),
        objects: Default::default(),
    }
}
