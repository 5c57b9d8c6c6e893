use vsrun_model::arena::Step;
use vsrun_model::object::{NONE, SHARED};
use vsrun_model::op::{TIMED, TRY, VARIANT};
use vsrun_model::{world, Act, Applied, Key, ObjId, ObjKind, Pid, SemBuf};

use super::super::names::object_name;
use super::super::steps::step_views;
use super::super::testing::World;
use super::*;
use crate::finding::Names;

struct Abc;

impl Names for Abc {
    fn object(&self, id: ObjId) -> String {
        ["a", "b", "c"].get(id as usize).map_or("?".into(), |name| name.to_string())
    }
    fn memory(&self, id: ObjId, byte: u8) -> String {
        format!("{}[{byte}]", self.object(id))
    }
    fn thread(&self, t: Tid) -> String {
        format!("0.{t}")
    }
    fn process(&self, p: Pid) -> String {
        (1001 + p).to_string()
    }
}

fn text(op: Op) -> String {
    op_text(&op).render(&Abc)
}

#[test]
fn operations_read_like_calls() {
    let mut cond = Op::on(Kind::COND_WAIT, 0);
    cond.obj2 = 1;
    let mut semop = Op::on(Kind::SYSV_OP, 0).arg(-1);
    semop.mask = 1 << 2;
    let mut both = Op::on(Kind::SYSV_OP, 0);
    both.mask = 1 << 2 | 1 << 3;
    let mut set = Op::on(Kind::SYSV_CTL, 0).arg(5 << 8 | 1);
    set.obj2 = 3;
    let mut upper = Op::on(Kind::MEM_WRITE, 0);
    upper.mask = 0xf0;
    let mut requeue = Op::on(Kind::FUTEX_REQUEUE, 0).arg(1 | i64::from(i32::MAX) << 32);
    requeue.obj2 = 1;
    let mut closes = Op::on(Kind::RECORD_UNLOCK, 0);
    closes.mask = vsrun_model::lock::CLOSE;
    let expected = [
        (Op::on(Kind::MUTEX_LOCK, 0), "pthread_mutex_lock(a)"),
        (Op::on(Kind::MUTEX_LOCK, 0).with(TRY), "pthread_mutex_trylock(a)"),
        (Op::on(Kind::MUTEX_LOCK, 0).until(5), "pthread_mutex_timedlock(a)"),
        (cond, "pthread_cond_wait(a, b)"),
        (cond.with(TIMED), "pthread_cond_timedwait(a, b)"),
        (Op::on(Kind::RW_WRWAIT, 0), "pthread_rwlock_wrlock(a)"),
        (Op::on(Kind::SEM_WAIT, 0).until(5), "sem_timedwait(a)"),
        (Op::on(Kind::SEM_POST, 0), "sem_post(a)"),
        (semop, "semop(a, [2] -1)"),
        (both.with(TIMED), "semtimedop(a, [2] [3])"),
        (set, "semctl(a, [3], SETVAL 5)"),
        (Op::on(Kind::SYSV_CTL, 0).arg(2), "semctl(a, IPC_RMID)"),
        (Op::on(Kind::JOIN, 2), "pthread_join(0.2)"),
        (Op::new(Kind::WAIT).arg(-1), "waitpid(-1)"),
        (Op::new(Kind::WAIT).arg(7).with(TRY), "waitpid(7, WNOHANG)"),
        (Op::new(Kind::EXIT).arg(3 << 8), "exit_group(3)"),
        (Op::new(Kind::EXIT).arg(9), "exit_group(signal 9)"),
        (Op::on(Kind::KILL, 1).arg(15), "kill(1002, SIGTERM)"),
        (Op::on(Kind::KILL, 1), "kill(1002, 0)"),
        (Op::on(Kind::FD_BIND, 0), "bind(a)"),
        (Op::on(Kind::FD_BIND, 0).with(VARIANT), "listen(a)"),
        (closes, "close(gives back record locks of a)"),
        (Op { obj: NONE, ..closes }, "close(gives back record locks)"),
        (Op::new(Kind::END), "ends"),
        (Op::new(Kind::PLACE).arg(57), "fork()"),
        (Op::new(Kind::FD_RESERVE), "takes the lowest free descriptor"),
        (Op::on(Kind::FD_LOOK, 0), "looks up a"),
        (Op::new(Kind::YIELD), "sched_yield()"),
        (Op::new(Kind::SLEEP).until(world::START + 1_500_000_000), "sleep(until +1.5 s)"),
        (Op::on(Kind::FUTEX_WAKE, 0).arg(1), "futex_wake(a, 1)"),
        (requeue, "futex_requeue(a -> b, wake 1, move all)"),
        (Op::on(Kind::MEM_READ, 0), "load(a)"),
        (upper, "store(a[4])"),
        (Op::new(Kind::NAME), "name_lookup()"),
        (Op::new(Kind::TOSS).arg(3), "VS_toss(3)"),
    ];
    for (op, expected) in expected {
        assert_eq!(text(op), expected);
    }
}

/// Kinds, also unknown ones, with operands that name nothing.
#[test]
fn any_operation_has_a_text() {
    for kind in 0..=255 {
        for flags in [0, TRY, TIMED] {
            let op = Op::on(Kind(kind), 77).with(flags).arg(i64::MIN);
            assert!(!text(op).is_empty());
        }
    }
}

#[test]
fn objects_have_names() {
    let mut world = World::new();
    let none = |_: &Key| None;
    let mutex = world.object(ObjKind::MUTEX, 0x40);
    let set = world.sysv_make(5, 2).unwrap();
    let named = world.object_at(SHARED | 3, ObjKind::SEM, 0x80, 0).unwrap();
    let shared = world.object_at(SHARED | 3, ObjKind::COND, 0x90, 0).unwrap();
    assert!(world.name_add(b"/jobs", named));
    assert_eq!(object_name(&world, mutex, &none), "mutex 0x40");
    assert_eq!(object_name(&world, mutex, &|key| Some(format!("lock_{:x}", key.addr))), "lock_40");
    assert_eq!(object_name(&world, set, &none), "set 5");
    assert_eq!(object_name(&world, named, &none), "/jobs");
    assert_eq!(object_name(&world, shared, &none), "condition variable 0x90 in region 3");
    assert_eq!(object_name(&world, NONE, &none), "?");
    world.make(Key::new(0, ObjKind::MUTEX, 0x40), |_| {});
    assert_eq!(object_name(&world, mutex, &none), "mutex 0x40#2");
    world.fork(0).unwrap();
    assert_eq!(object_name(&world, mutex, &none), "mutex 0x40#2@0");
    let copy = world.find(Key::new(1, ObjKind::MUTEX, 0x40)).unwrap();
    assert_eq!(object_name(&world, copy, &none), "mutex 0x40#2@0.1");
}

#[test]
fn semops_show_all_operations() {
    let mut world = World::new();
    let set = world.sysv_make(0, 4).unwrap();
    let ops =
        [SemBuf { num: 2, op: -1, flags: 0 }, SemBuf { num: 3, op: 2, flags: 0 }, SemBuf { num: 0, op: 0, flags: 0 }];
    world.threads[0].sembuf[..3].copy_from_slice(&ops);
    world.threads[0].n_sembuf = 3;
    world.publish(0, Op::on(Kind::SYSV_OP, set));
    assert_eq!(pending_text(&world, 0).render(&Abc), "semop(a, [2] -1, [3] +2, [0] =0)");
}

/// Runs operations in a world and notes the steps as the scheduler does.
struct Run {
    world: World,
    steps: Vec<Step>,
}

impl Run {
    fn go(&mut self, t: Tid, op: Op, value: u32) -> Applied {
        self.world.publish(t, op);
        self.again(t, value)
    }

    fn again(&mut self, t: Tid, value: u32) -> Applied {
        let (act, choices): (Act, u32) = (self.world.act(t), self.world.choices(t));
        assert!(choices > value);
        self.steps.push(Step { act, value, choices, ..Step::default() });
        self.world.perform(t, value)
    }
}

#[test]
fn steps_say_who_is_woken() {
    let mut world = World::with_threads(3);
    let (m, c) = (world.object(ObjKind::MUTEX, 1), world.object(ObjKind::COND, 2));
    let mut run = Run { world, steps: Vec::new() };
    let mut wait = Op::on(Kind::COND_WAIT, c);
    wait.obj2 = m;
    for t in [3, 1, 2] {
        run.go(t, Op::on(Kind::MUTEX_LOCK, m), 0);
        run.go(t, wait, 0);
    }
    run.go(0, Op::on(Kind::COND_SIGNAL, c), 1);
    run.again(2, 0);
    run.go(0, Op::on(Kind::COND_BROADCAST, c), 0);
    run.go(0, Op::on(Kind::COND_SIGNAL, c), 0);
    run.go(0, Op::new(Kind::TOSS).arg(2), 2);
    let views = step_views(&run.steps);
    let full = |view: &crate::finding::StepView| {
        let note = view.note.as_ref().map_or(String::new(), |note| format!("  ({})", note.render(&Abc)));
        view.text.render(&Abc) + &note
    };
    let tail: Vec<_> = views[6..].iter().map(full).collect();
    let expected = [
        "pthread_cond_signal(b) wakes 0.2  (alternative 2 of 3)",
        "pthread_cond_wait(b, a) returns",
        "pthread_cond_broadcast(b) wakes 0.1, 0.3",
        "pthread_cond_signal(b) wakes nobody",
        "VS_toss(2) = 2",
    ];
    assert_eq!(tail, expected);
    assert_eq!(views[0].thread.to_string(), "0.3");
    assert_eq!((views[6].op.kind, views[6].value, views[6].alternatives), (Kind::COND_SIGNAL, 1, 3));
    assert_eq!(views[6].woken.as_deref(), Some(&[2][..]));
}

#[test]
fn nothing_is_said_of_waiters_that_are_not_known() {
    let mut world = World::with_threads(2);
    let c = world.object(ObjKind::COND, 2);
    let mut run = Run { world, steps: Vec::new() };
    run.go(1, Op::on(Kind::COND_SIGNAL, c), 0);
    run.steps[0].act.state = 1;
    assert_eq!(step_views(&run.steps)[0].text.render(&Abc), "pthread_cond_signal(a)");
}
