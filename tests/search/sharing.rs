//! Objects of a thread's own: whose operations pass, what makes an object shared, what is noted.

use crate::interp::Machine;
use vsrun_model::arena::Plan;
use vsrun_model::errno;
use vsrun_model::object::{MUTEX_RECURSIVE, PREFER_WRITER};
use vsrun_model::op::{CANCEL_POINT, TRY};
use vsrun_model::sharing::{name_of, visible, Declared, Sharing, LONG_RUN, LONG_RUNS};
use vsrun_model::stream::EXPLICIT;
use vsrun_model::{Applied, Arena, Decision, Key, Kind, ObjKind, Op, ThreadState, Tid, NONE, WNOHANG};

const MAIN: Tid = 0;

/// An arena with a process of one thread, unshared objects passed over.
fn with_arena(test: impl Fn(&mut Arena)) {
    let mut machine = Machine::new();
    let arena = machine.arena();
    arena.world.create_process(NONE).expect("room");
    begin(arena, &[]);
    test(arena);
}

/// Prepares an execution in which these names are known.
fn begin(arena: &mut Arena, known: &[u64]) {
    arena.known_shared.clear();
    for &name in known {
        arena.known_shared.push(name).expect("room");
    }
    arena.prepare(Plan { unshared: true, max_depth: u64::MAX, ..Plan::default() }, &[], &[]).expect("fits");
}

fn thread(arena: &mut Arena, creator: Tid) -> Tid {
    let pid = arena.world.threads[creator].pid;
    arena.world.create_thread(pid, creator).expect("room")
}

fn mutex(arena: &mut Arena, addr: u64) -> u32 {
    arena.world.make(Key::new(0, ObjKind::MUTEX, addr), |_| {}).expect("room")
}

fn noted(arena: &Arena) -> Vec<u64> {
    arena.noted.as_slice().iter().map(|n| n.name).collect()
}

fn lock(m: u32) -> Op {
    Op::on(Kind::MUTEX_LOCK, m)
}

fn unlock(m: u32) -> Op {
    Op::on(Kind::MUTEX_UNLOCK, m)
}

/// Passes a critical section of `t`; false if the scheduler is to decide.
fn section(arena: &mut Arena, t: Tid, m: u32) -> bool {
    let passed = arena.pass(t, &lock(m)) == Some(Applied::Done(0));
    passed && arena.pass(t, &unlock(m)) == Some(Applied::Done(0))
}

/// `t` ends and is joined by `by`.
fn join(arena: &mut Arena, t: Tid, by: Tid) {
    arena.world.thread_exit(t);
    let op = Op::on(Kind::JOIN, t);
    assert_eq!(arena.pass(by, &op), None);
    arena.world.publish(by, op);
    assert_eq!(arena.world.perform(by, 0), Applied::Done(0));
}

#[test]
fn only_the_thread_that_uses_it_passes() {
    with_arena(|arena| {
        let m = mutex(arena, 0x100);
        assert_eq!(arena.pass(MAIN, &lock(m)), None, "one thread alone is initialization");
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        let (ops, passed) = (arena.world.ops, arena.world.passed);
        assert!(section(arena, t, m) && section(arena, t, m));
        assert_eq!((arena.world.ops, arena.world.passed), (ops + 4, passed + 4), "a sign of life");
        assert_eq!(arena.world.threads[t].state, ThreadState::STARTING, "has yet to give the turn back");
        assert_eq!(arena.passed_last(), Some(name_of(arena.world.objects[m].key)));
        assert_eq!((arena.pass(u, &lock(m)), noted(arena).len()), (None, 1));
        assert!(!section(arena, t, m), "shared from then on");
        let name = noted(arena)[0];
        begin(arena, &[name]);
        assert!(noted(arena).is_empty());
        let n = mutex(arena, 0x100);
        assert_eq!(n, m);
        assert!(!section(arena, t, m) && noted(arena).is_empty(), "known from the first operation on");
    });
}

fn rwlock(arena: &mut Arena, addr: u64) -> u32 {
    arena.world.make(Key::new(0, ObjKind::RWLOCK, addr), |_| {}).expect("room")
}

/// As [`section`], of a read-write lock.
fn holds(arena: &mut Arena, t: Tid, kind: Kind, l: u32) -> bool {
    let passed = arena.pass(t, &Op::on(kind, l)) == Some(Applied::Done(0));
    passed && arena.pass(t, &Op::on(Kind::RW_UNLOCK, l)) == Some(Applied::Done(0))
}

fn reads(arena: &mut Arena, t: Tid, l: u32) -> bool {
    holds(arena, t, Kind::RW_RDLOCK, l)
}

fn writes(arena: &mut Arena, t: Tid, l: u32) -> bool {
    holds(arena, t, Kind::RW_WRLOCK, l)
}

#[test]
fn readers_pass_beside_each_other() {
    with_arena(|arena| {
        let l = rwlock(arena, 0x100);
        let (t, u, v) = (thread(arena, MAIN), thread(arena, MAIN), thread(arena, MAIN));
        assert!(reads(arena, t, l) && reads(arena, u, l) && reads(arena, t, l) && reads(arena, MAIN, l));
        // Each holds it while the others come and go.
        let lock = Op::on(Kind::RW_RDLOCK, l);
        assert_eq!(arena.pass(t, &lock), Some(Applied::Done(0)));
        assert!(reads(arena, u, l));
        assert_eq!(arena.pass(t, &Op::on(Kind::RW_UNLOCK, l)), Some(Applied::Done(0)));
        assert!(noted(arena).is_empty());
        assert!(!writes(arena, v, l), "it has not read, and the others may read at any time");
        assert_eq!(noted(arena), [name_of(arena.world.objects[l].key)]);
        assert!(!reads(arena, t, l), "shared from then on");
    });
    with_arena(|arena| {
        let l = rwlock(arena, 0x100);
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(reads(arena, t, l) && reads(arena, u, l));
        assert!(!writes(arena, u, l), "the last that has read it writes: the other one may come before or after");
        assert_eq!(noted(arena).len(), 1);
    });
    with_arena(|arena| {
        let l = rwlock(arena, 0x100);
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(writes(arena, t, l), "one thread alone");
        assert!(!reads(arena, u, l), "nothing orders that with what the first one wrote");
        assert_eq!(noted(arena).len(), 1);
    });
    with_arena(|arena| {
        let l = rwlock(arena, 0x100);
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(reads(arena, t, l) && reads(arena, u, l));
        let op = Op::on(Kind::RW_WRLOCK, l).with(TRY);
        assert_eq!(arena.pass(u, &op), None, "whether it is free tells of the reader");
        assert_eq!(noted(arena).len(), 1);
    });
}

#[test]
fn who_writes_before_or_after_all_readers_passes() {
    with_arena(|arena| {
        let l = rwlock(arena, 0x100);
        let other = thread(arena, MAIN);
        assert!(writes(arena, MAIN, l));
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(reads(arena, t, l) && reads(arena, u, l));
        join(arena, t, MAIN);
        join(arena, u, MAIN);
        assert!(writes(arena, MAIN, l), "all have been joined that have read it");
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(reads(arena, t, l) && reads(arena, u, l), "created after that");
        join(arena, t, MAIN);
        assert!(noted(arena).is_empty());
        assert!(!writes(arena, MAIN, l), "one has not been joined");
        assert_eq!(noted(arena).len(), 1);
        assert!(!reads(arena, other, l));
    });
    with_arena(|arena| {
        let l = rwlock(arena, 0x100);
        let other = thread(arena, MAIN);
        assert!(writes(arena, MAIN, l));
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(reads(arena, t, l) && reads(arena, u, l));
        assert!(!reads(arena, other, l), "it is there since before the write");
        assert_eq!(noted(arena).len(), 1);
    });
}

#[test]
fn creation_and_join_hand_objects_on() {
    with_arena(|arena| {
        let m = mutex(arena, 0x100);
        let other = thread(arena, MAIN);
        assert!(section(arena, MAIN, m));
        let t = thread(arena, MAIN);
        let below = thread(arena, t);
        assert!(section(arena, below, m), "created after the last use, by one created after it");
        assert!(section(arena, below, m));
        join(arena, below, t);
        assert!(section(arena, t, m));
        join(arena, t, other);
        let late = thread(arena, other);
        assert!(section(arena, late, m), "joined by the one that created it then");
        assert!(noted(arena).is_empty());
        let early = thread(arena, MAIN);
        assert!(!section(arena, early, m));
        assert_eq!(noted(arena).len(), 1);
    });
    with_arena(|arena| {
        let m = mutex(arena, 0x100);
        let t = thread(arena, MAIN);
        assert!(section(arena, MAIN, m));
        assert!(!section(arena, t, m), "created before the use");
        let n = mutex(arena, 0x200);
        assert!(section(arena, t, n));
        arena.world.thread_exit(t);
        assert!(!section(arena, MAIN, n), "over, but not joined");
    });
}

#[test]
fn what_would_block_is_published() {
    with_arena(|arena| {
        let m = mutex(arena, 0x100);
        let t = thread(arena, MAIN);
        assert_eq!(arena.pass(t, &lock(m)), Some(Applied::Done(0)));
        assert_eq!(arena.pass(t, &lock(m)), None, "a second lock of a normal mutex");
        assert_eq!(arena.pass(t, &lock(m).with(TRY)), Some(Applied::Done(errno::EBUSY)));
        let world = &mut arena.world;
        let recursive = world.make(Key::new(0, ObjKind::MUTEX, 0x200), |o| o.flags = MUTEX_RECURSIVE).expect("room");
        let sem = world.make(Key::new(0, ObjKind::SEM, 0x300), |_| {}).expect("room");
        let rw = world.make(Key::new(0, ObjKind::RWLOCK, 0x400), |o| o.flags = PREFER_WRITER).expect("room");
        let cond = world.make(Key::new(0, ObjKind::COND, 0x500), |_| {}).expect("room");
        assert!(section(arena, t, recursive));
        let wait = Op::on(Kind::SEM_WAIT, sem).with(CANCEL_POINT);
        assert_eq!(arena.pass(t, &wait), None);
        assert_eq!(arena.pass(t, &wait.until(1)), None, "that its time is up is no reason to pass");
        assert_eq!(arena.pass(t, &Op::on(Kind::SEM_POST, sem)), Some(Applied::Done(0)));
        assert_eq!(arena.pass(t, &wait), Some(Applied::Done(0)));
        assert_eq!(arena.pass(t, &Op::on(Kind::RW_RDLOCK, rw)), Some(Applied::Done(0)));
        assert_eq!(arena.pass(t, &Op::on(Kind::RW_WRLOCK, rw)), None, "it would announce itself and wait");
        assert_eq!(arena.pass(t, &Op::on(Kind::COND_SIGNAL, cond)), None, "for talking to others");
        assert!(noted(arena).is_empty());
    });
}

#[test]
fn a_fork_copies_what_another_thread_may_hold() {
    with_arena(|arena| {
        let (m, n) = (mutex(arena, 0x100), mutex(arena, 0x200));
        let t = thread(arena, MAIN);
        assert!(section(arena, t, m) && section(arena, MAIN, n));
        let (p, child) = arena.world.fork(MAIN).expect("room");
        let copy = |arena: &Arena, addr| arena.world.find(Key::new(p, ObjKind::MUTEX, addr)).expect("copied");
        let (of_m, of_n) = (copy(arena, 0x100), copy(arena, 0x200));
        assert!(section(arena, child, of_n) && section(arena, MAIN, n), "two objects, one user each");
        assert!(!section(arena, child, of_m));
        assert_eq!(noted(arena), [name_of(arena.world.objects[m].key)], "the original goes by the same name");
    });
}

#[test]
fn who_can_be_hit_between_operations_does_not_pass() {
    let exposing: [fn(Tid) -> Op; 3] =
        [|t| Op::on(Kind::CANCEL, t), |_| Op::on(Kind::KILL, 0), |t| Op::on(Kind::JOIN, t).with(TRY)];
    for op in exposing {
        with_arena(|arena| {
            let m = mutex(arena, 0x100);
            let t = thread(arena, MAIN);
            assert!(section(arena, t, m));
            assert_eq!((arena.pass(MAIN, &op(t)), noted(arena).len()), (None, 1));
            assert!(!section(arena, t, m), "at once");
            let names = noted(arena);
            arena.world.reset();
            begin(arena, &names);
            arena.world.create_process(NONE).expect("room");
            let (m, t) = (mutex(arena, 0x100), thread(arena, MAIN));
            assert!(!section(arena, t, m), "in later executions from the start");
        });
    }
    with_arena(|arena| {
        let (_, child) = arena.world.fork(MAIN).expect("room");
        let m = mutex(arena, 0x100);
        assert!(section(arena, child, m));
        assert_eq!(arena.pass(MAIN, &Op::new(Kind::WAIT).arg(-1)), None);
        assert!(noted(arena).is_empty(), "waiting for an only child is like a join");
        arena.pass(MAIN, &Op::new(Kind::WAIT).arg(-1).with(WNOHANG));
        assert_eq!(noted(arena).len(), 1);
        assert!(!section(arena, child, m));
    });
}

#[test]
fn declarations_are_checked() {
    with_arena(|arena| {
        arena.declared.push(Declared::new(0x100, 0x180, Sharing::ATOMIC)).expect("room");
        arena.plan.unshared = false;
        let (log, common) = (mutex(arena, 0x140), mutex(arena, 0x180));
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(section(arena, t, log) && section(arena, u, log), "whoever it is");
        assert!(!section(arena, t, common), "not declared, and the reduction is off");
        assert_eq!(arena.pass(t, &lock(log)), Some(Applied::Done(0)));
        assert!(noted(arena).is_empty());
        assert_eq!(arena.pass(t, &lock(common)), None);
        let refuted = arena.noted.as_slice()[0];
        assert_eq!((refuted.name, refuted.declared), (name_of(arena.world.objects[log].key), 1));
        assert_eq!(arena.pass(t, &unlock(log)), None, "shared from then on");
    });
    with_arena(|arena| {
        arena.declared.push(Declared::new(0x100, 0x180, Sharing::OWN)).expect("room");
        arena.plan.unshared = false;
        let m = mutex(arena, 0x17f);
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(section(arena, t, m) && !section(arena, u, m));
        assert_eq!(arena.noted.as_slice()[0].declared, 1);
    });
}

#[test]
fn a_long_run_gives_way() {
    with_arena(|arena| {
        let (m, n) = (mutex(arena, 0x100), mutex(arena, 0x200));
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        let rounds = |arena: &mut Arena, t, m| (0..LONG_RUN).take_while(|_| section(arena, t, m)).count() as u32;
        assert_eq!(rounds(arena, t, m), LONG_RUN / 2);
        arena.world.publish(t, lock(m));
        arena.world.publish(MAIN, Op::on(Kind::JOIN, t));
        arena.world.publish(u, Op::new(Kind::TOSS));
        let seen = |arena: &Arena| visible(arena.world.ops, arena.world.passed, arena.world.long_runs);
        let before = seen(arena);
        arena.world.current = t;
        assert_eq!(arena.step(), Decision::Run(u), "the next one in order");
        assert_eq!(arena.world.perform(u, 0), Applied::Done(0));
        assert_eq!(rounds(arena, u, n), LONG_RUN / 2, "whatever others do");
        arena.world.publish(u, lock(n));
        assert_eq!(arena.step(), Decision::Run(t));
        assert_eq!(arena.world.perform(t, 0), Applied::Done(0));
        assert!(!arena.world.threads[t].long_run);
        assert_eq!(seen(arena), before + 1, "the toss");
    });
}

#[test]
fn the_last_long_run_goes_on_while_nobody_else_can() {
    with_arena(|arena| {
        let sem = arena.world.make(Key::new(0, ObjKind::SEM, 0x100), |_| {}).expect("room");
        let post = Op::on(Kind::SEM_POST, sem);
        let t = thread(arena, MAIN);
        arena.world.publish(MAIN, Op::on(Kind::JOIN, t));
        arena.world.threads[t].state = ThreadState::RUNNING;
        let run = |arena: &mut Arena| (0..2 * LONG_RUN).take_while(|_| arena.pass(t, &post).is_some()).count() as u32;
        for _ in 0..LONG_RUNS {
            assert_eq!(run(arena), LONG_RUN);
            arena.world.publish(t, post);
            assert_eq!(arena.step(), Decision::Run(t));
            assert_eq!(arena.world.perform(t, 0), Applied::Done(0));
        }
        assert_eq!(run(arena), 2 * LONG_RUN);
        let other = thread(arena, MAIN);
        arena.world.publish(other, Op::new(Kind::TOSS));
        assert!(run(arena) <= LONG_RUN, "somebody else can");
        arena.world.publish(t, post);
        assert_eq!(arena.step(), Decision::Run(other));
    });
}

fn stream(arena: &mut Arena, addr: u64) -> u32 {
    arena.world.make(Key::new(0, ObjKind::STREAM, addr), |_| {}).expect("room")
}

fn take(s: u32) -> Op {
    Op::on(Kind::STREAM_LOCK, s)
}

fn give(s: u32) -> Op {
    Op::on(Kind::STREAM_UNLOCK, s)
}

/// Passes the two operations of a thread that prints.
fn prints(arena: &mut Arena, t: Tid, s: u32) -> bool {
    let passed = arena.pass(t, &take(s)) == Some(Applied::Done(0));
    passed && arena.pass(t, &give(s)) == Some(Applied::Done(0))
}

#[test]
fn streams_are_shared_once_it_matters_who_comes_first() {
    // Nobody can tell, in whatever order they print.
    with_arena(|arena| {
        let s = stream(arena, 0x100);
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(prints(arena, t, s) && prints(arena, u, s) && prints(arena, t, s));
        assert!(noted(arena).is_empty());
        // Now somebody asks.
        arena.stream_tells(s);
        assert_eq!(noted(arena), [name_of(arena.world.objects[s].key)]);
        assert!(!prints(arena, t, s), "shared from then on");
    });
    // Named, told by the caller, tried: each with another thread in no order.
    for op in [take(0).with(EXPLICIT), take(0).arg(1), take(0).with(TRY | EXPLICIT)] {
        with_arena(|arena| {
            let s = stream(arena, 0x100);
            let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
            assert!(prints(arena, t, s));
            assert_eq!((arena.pass(u, &Op { obj: s, ..op }), noted(arena).len()), (None, 1), "{op:?}");
        });
    }
    // Held at a place to switch, before or after another prints; and by a thread that ends.
    for (first, ends) in [(true, false), (false, false), (false, true)] {
        with_arena(|arena| {
            let s = stream(arena, 0x100);
            let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
            assert!(!first || prints(arena, u, s));
            assert_eq!(arena.pass(t, &take(s)), Some(Applied::Done(0)));
            match ends {
                true => arena.hold_streams(t),
                false => assert_eq!(arena.pass(t, &Op::new(Kind::YIELD)), None),
            }
            assert_eq!(noted(arena).len(), usize::from(first));
            assert!(!prints(arena, u, s), "it is taken");
            assert_eq!(noted(arena).len(), 1);
        });
    }
}

#[test]
fn streams_taken_in_a_circle_are_shared() {
    with_arena(|arena| {
        let (a, b, c) = (stream(arena, 0x100), stream(arena, 0x200), stream(arena, 0x300));
        let nested = |arena: &mut Arena, t: Tid, outer: u32, inner: u32| {
            arena.pass(t, &take(outer)) == Some(Applied::Done(0))
                && prints(arena, t, inner)
                && arena.pass(t, &give(outer)) == Some(Applied::Done(0))
        };
        let (t, u) = (thread(arena, MAIN), thread(arena, MAIN));
        assert!(nested(arena, t, a, b) && nested(arena, u, b, c) && nested(arena, u, a, c));
        assert!(noted(arena).is_empty(), "in one order");
        assert!(!nested(arena, t, c, a), "c before a closes a circle");
        assert_eq!(noted(arena).len(), 3);
    });
}
