use vsrun_model::object::{MUTEX_RECURSIVE, NONE, PREFER_WRITER};
use vsrun_model::{End, Kind, Misuse, Op, Pid, SemBuf};

use super::super::ends::{cycle, headline};
use super::super::names::object_name;
use super::super::testing::{crossed_locks, World};
use super::*;
use crate::finding::{BugKind, CycleLink, Names};

/// Names objects by address: `m10`.
struct ByAddress<'a>(&'a World);

impl Names for ByAddress<'_> {
    fn object(&self, id: ObjId) -> String {
        let symbol = |key: &vsrun_model::Key| Some(format!("{}{:x}", &key.kind.name()[..1], key.addr));
        object_name(self.0, id, &symbol)
    }
    fn memory(&self, id: ObjId, byte: u8) -> String {
        format!("{}[{byte}]", self.object(id))
    }
    fn thread(&self, t: Tid) -> String {
        self.0.threads[t].uid.to_string()
    }
    fn process(&self, p: Pid) -> String {
        self.0.procs[p].vpid.to_string()
    }
}

fn waits(world: &World, t: Tid) -> Vec<String> {
    waits_for(world, t).iter().map(|words| words.render(&ByAddress(world))).collect()
}

fn held_by(world: &World, t: Tid) -> Vec<String> {
    holds(world, t).iter().map(|words| words.render(&ByAddress(world))).collect()
}

fn headline_of(world: &World) -> Option<(BugKind, String)> {
    headline(world).map(|(kind, line)| (kind, line.render(&ByAddress(world))))
}

#[test]
fn crossed_locks_are_a_circle() {
    let world = crossed_locks(&[], (0x10, 0x20));
    assert_eq!(waits(&world, 1), ["m20, held by thread 0.2"]);
    assert_eq!(held_by(&world, 1), ["m10"]);
    assert_eq!(waits(&world, 0), ["the end of thread 0.1"]);
    let summary = "2 threads wait for each other: 0.1 for m20, 0.2 for m10";
    assert_eq!(headline_of(&world), Some((BugKind::Deadlock, summary.into())));
    assert_eq!(cycle(&world).unwrap()[0], CycleLink { thread: 1, object: Some(1) });
}

#[test]
fn a_thread_that_locks_twice() {
    let mut world = World::with_threads(1);
    let m = world.object(ObjKind::MUTEX, 1);
    world.run(1, Op::on(Kind::MUTEX_LOCK, m), 0);
    world.publish(1, Op::on(Kind::MUTEX_LOCK, m));
    assert_eq!(world.end, End::CYCLE);
    assert_eq!(waits(&world, 1), ["m1, which it holds itself"]);
    assert_eq!(headline_of(&world).unwrap().1, "thread 0.1 waits for m1, which it holds itself");
}

#[test]
fn locks_of_threads_that_are_over() {
    let mut world = World::with_threads(2);
    let m = world.object(ObjKind::MUTEX, 1);
    world.run(1, Op::on(Kind::MUTEX_LOCK, m), 0);
    world.thread_exit(1);
    world.publish(2, Op::on(Kind::MUTEX_LOCK, m));
    assert_eq!(waits(&world, 2), ["m1, held by thread 0.1 (which is over)"]);
}

#[test]
fn holds_of_every_kind() {
    let mut world = World::with_threads(1);
    let m = world.object_at(0, ObjKind::MUTEX, 1, MUTEX_RECURSIVE).unwrap();
    let (r, w) = (world.object(ObjKind::RWLOCK, 2), world.object(ObjKind::RWLOCK, 3));
    let (s, o) = (world.object(ObjKind::SPIN, 4), world.object(ObjKind::ONCE, 5));
    for op in [
        Op::on(Kind::MUTEX_LOCK, m),
        Op::on(Kind::MUTEX_LOCK, m),
        Op::on(Kind::RW_RDLOCK, r),
        Op::on(Kind::RW_WRLOCK, w),
    ] {
        world.run(1, op, 0);
    }
    world.run(1, Op::on(Kind::SPIN_LOCK, s), 0);
    world.run(1, Op::on(Kind::ONCE, o), 0);
    assert_eq!(
        held_by(&world, 1),
        ["m1 (2 times)", "r2 (for reading)", "r3 (for writing)", "s4", "o5 (runs its initializer)"]
    );
    assert!(held_by(&world, 0).is_empty());
}

#[test]
fn rwlocks() {
    let mut world = World::with_threads(4);
    let plain = world.object(ObjKind::RWLOCK, 1);
    let fair = world.object_at(0, ObjKind::RWLOCK, 2, PREFER_WRITER).unwrap();
    world.run(1, Op::on(Kind::RW_RDLOCK, plain), 0);
    world.run(2, Op::on(Kind::RW_RDLOCK, plain), 0);
    world.run(2, Op::on(Kind::RW_RDLOCK, fair), 0);
    world.publish(3, Op::on(Kind::RW_WRLOCK, plain));
    assert_eq!(waits(&world, 3).len(), 2);
    assert!(waits(&world, 3).contains(&"r1, held by thread 0.2 for reading".to_string()));
    world.run(4, Op::on(Kind::RW_WRLOCK, fair), 0);
    assert_eq!(waits(&world, 4), ["r2, held by thread 0.2 for reading"]);
    world.publish(1, Op::on(Kind::RW_RDLOCK, fair));
    assert_eq!(waits(&world, 1), ["r2, where the writer 0.4 waits first"]);
}

#[test]
fn wake_ups_that_nobody_can_give() {
    let mut world = World::with_threads(1);
    let (m, c) = (world.object(ObjKind::MUTEX, 1), world.object(ObjKind::COND, 2));
    let mut wait = Op::on(Kind::COND_WAIT, c);
    wait.obj2 = m;
    world.run(1, Op::on(Kind::MUTEX_LOCK, m), 0);
    world.run(1, wait, 0);
    assert_eq!(waits(&world, 1), ["c2 to be signalled"]);
    world.publish(0, Op::on(Kind::JOIN, 1));
    assert_eq!(waits(&world, 1), ["c2 to be signalled (nobody is left who could)"]);
    world.finish(End::DEADLOCK, 0, NONE, 0);
    let summary = "nothing can move, 2 threads wait: 0 in pthread_join(0.1), 0.1 in pthread_cond_wait(c2, m1)";
    assert_eq!(headline_of(&world), Some((BugKind::Deadlock, summary.into())));
}

#[test]
fn a_signalled_waiter_waits_for_the_mutex() {
    let mut world = World::with_threads(2);
    let (m, c) = (world.object(ObjKind::MUTEX, 1), world.object(ObjKind::COND, 2));
    let mut wait = Op::on(Kind::COND_WAIT, c);
    wait.obj2 = m;
    world.run(1, Op::on(Kind::MUTEX_LOCK, m), 0);
    world.run(1, wait, 0);
    world.run(2, Op::on(Kind::MUTEX_LOCK, m), 0);
    world.run(2, Op::on(Kind::COND_SIGNAL, c), 0);
    assert_eq!(waits(&world, 1), ["m1, held by thread 0.2"]);
}

#[test]
fn semaphores_and_barriers() {
    let mut world = World::with_threads(2);
    let set = world.sysv_make(7, 3).unwrap();
    world.sysv_set(0, set, 0, 1);
    let ops = [SemBuf { num: 0, op: -1, flags: 0 }, SemBuf { num: 2, op: -2, flags: 0 }];
    world.threads[1].sembuf[..2].copy_from_slice(&ops);
    world.threads[1].n_sembuf = 2;
    world.publish(1, Op::on(Kind::SYSV_OP, set));
    assert_eq!(waits(&world, 1), ["[2] of set 7 to reach 2 (it is 0)"]);
    world.threads[1].sembuf[0].op = 0;
    let expected = "[0] of set 7 to become 0 (it is 1, last changed by process 1001)";
    assert_eq!(waits(&world, 1)[0], expected);
    let barrier = world.object(ObjKind::BARRIER, 9);
    world.objects[barrier].count = 3;
    world.run(2, Op::on(Kind::BARRIER_WAIT, barrier), 0);
    assert_eq!(waits(&world, 2), ["b9, where 1 of 3 have arrived"]);
}

#[test]
fn children_that_are_awaited() {
    let mut world = World::new();
    let (_, t) = world.fork(0).unwrap();
    world.publish(0, Op::new(Kind::WAIT).arg(-1));
    assert_eq!(waits(&world, 0), ["the end of process 1002"]);
    world.fork(t).unwrap();
    world.threads[0].state = ThreadState::RUNNING;
    world.fork(0).unwrap();
    world.publish(0, Op::new(Kind::WAIT).arg(-1));
    assert_eq!(waits(&world, 0), ["the end of one of the processes 1002, 1004"]);
    world.process_exit(1, 0);
    assert!(waits(&world, 0).is_empty());
}

#[test]
fn other_ends() {
    let ended = |end, obj, code, text: &str| {
        let mut world = World::with_threads(1);
        world.object(ObjKind::MUTEX, 1);
        world.finish_with(end, 1, &[text.as_bytes()]);
        (world.end_obj, world.end_code) = (obj, code);
        headline_of(&world)
    };
    assert_eq!(ended(End::ASSERT, NONE, 0, "p.c:3: x > 0\n"), Some((BugKind::Assert, "p.c:3: x > 0".into())));
    let misuse = "misuse by thread 0.1: unlock of a lock that is not locked: m1";
    assert_eq!(ended(End::MISUSE, 0, Misuse::UNLOCK_FREE.0, ""), Some((BugKind::Assert, misuse.into())));
    assert_eq!(ended(End::STATUS, 0, 3 << 8, ""), Some((BugKind::Assert, "exit status 3, by thread 0.1".into())));
    let livelock = "process 1001 could do nothing in 50 states in a row";
    assert_eq!(ended(End::LIVELOCK, 0, 50, ""), Some((BugKind::Livelock, livelock.into())));
    assert_eq!(ended(End::UNSUPPORTED, NONE, 0, "x"), Some((BugKind::Error, "x".into())));
    for end in
        [End::FINISHED, End::RUNNING, End::DEPTH, End::SLEEP_BLOCKED, End::MISMATCH, End::BUG, End::WAITS_OUTSIDE]
    {
        assert_eq!(ended(end, NONE, 0, "x"), None);
    }
}
