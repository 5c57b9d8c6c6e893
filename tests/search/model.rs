//! The modelled objects, operation by operation.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::interp::Machine;
use vsrun_model::arena::{Control, GUARDED_ALWAYS};
use vsrun_model::errno::*;
use vsrun_model::futex::Several;
use vsrun_model::object::{
    INHERITS, MUTEX_ERRORCHECK, MUTEX_NORMAL, MUTEX_RECURSIVE, NEVER_FREE, OWNER_DEAD, PREFER_WRITER, ROBUST, SHARED,
};
use vsrun_model::op::{CANCEL_POINT, PARTIAL, TRY};
use vsrun_model::world::{CIRCLE_INHERITED, START};
use vsrun_model::{Applied, Arena, Decision, End, Key, Kind, Misuse, ObjKind, Op, SemBuf, Tid, World, NONE};
use vsrun_model::{IPC_NOWAIT, SEM_UNDO, WNOHANG, WNOWAIT};

mod futexes;

/// A world with one process of `threads` threads, handed to `test`.
fn with_threads(threads: u32, test: impl FnOnce(&mut Arena)) {
    let mut machine = Machine::new();
    let arena = machine.arena();
    let plan = arena.plan;
    arena.prepare(plan, &[], &[]).expect("fits");
    arena.world.create_process(NONE).expect("room");
    for _ in 1..threads {
        arena.world.create_thread(0, 0).expect("room");
    }
    test(arena);
}

fn world(threads: u32, test: impl FnOnce(&mut World)) {
    with_threads(threads, |arena| test(&mut arena.world));
}

fn make(world: &mut World, kind: ObjKind, flags: u32) -> u32 {
    let n = world.objects.as_slice().len() as u64;
    world.make(Key::new(SHARED, kind, n * 64), |new| new.flags = flags).expect("room")
}

/// What `t` gets for `op` in alternative `value`, or `None` if it has to wait (or wait on, or the execution ended).
fn alternative(world: &mut World, t: Tid, op: Op, value: u32) -> Option<i64> {
    world.publish(t, op);
    go_on(world, t, value)
}

/// What `t` gets for its pending operation.
fn go_on(world: &mut World, t: Tid, value: u32) -> Option<i64> {
    if world.end != End::RUNNING || world.choices(t) <= value {
        return None;
    }
    match world.perform(t, value) {
        Applied::Done(result) => Some(result),
        Applied::Parked | Applied::Ended | Applied::Signalled(_) => None,
    }
}

fn does(world: &mut World, t: Tid, op: Op) -> Option<i64> {
    alternative(world, t, op, 0)
}

fn both(kind: Kind, obj: u32, obj2: u32) -> Op {
    let mut op = Op::on(kind, obj);
    op.obj2 = obj2;
    op
}

fn lock(m: u32) -> Op {
    Op::on(Kind::MUTEX_LOCK, m)
}

fn unlock(m: u32) -> Op {
    Op::on(Kind::MUTEX_UNLOCK, m)
}

#[test]
fn a_normal_mutex_excludes() {
    world(2, |w| {
        let m = make(w, ObjKind::MUTEX, 0);
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 1, lock(m).with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 1, lock(m)), None);
        assert_eq!(does(w, 0, unlock(m)), Some(0));
        assert_eq!(go_on(w, 1, 0), Some(0));
        assert_eq!(w.objects[m].owner, 1);
        assert_eq!(does(w, 1, lock(m).with(TRY)), Some(EBUSY), "trylock by the owner fails");
    });
}

#[test]
fn a_normal_mutex_locked_twice_is_a_circle() {
    world(2, |w| {
        let m = make(w, ObjKind::MUTEX, 0);
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 0, lock(m)), None);
        assert_eq!((w.end, w.n_cycle, w.cycle[0]), (End::CYCLE, 1, 0));
    });
}

#[test]
fn locks_taken_crosswise_are_a_circle() {
    world(3, |w| {
        let (a, b) = (make(w, ObjKind::MUTEX, 0), make(w, ObjKind::MUTEX, 0));
        assert_eq!(does(w, 0, lock(a)), Some(0));
        assert_eq!(does(w, 1, lock(b)), Some(0));
        assert_eq!(does(w, 0, lock(b)), None);
        assert_eq!(w.end, End::RUNNING);
        assert_eq!(does(w, 1, lock(a)), None);
        assert_eq!((w.end, w.n_cycle), (End::CYCLE, 2));
    });
}

#[test]
fn misuse_ends_the_execution_unless_allowed() {
    let cases: [(bool, Misuse); 2] = [(false, Misuse::UNLOCK_FREE), (true, Misuse::UNLOCK_FOREIGN)];
    for (taken, what) in cases {
        world(2, |w| {
            let m = make(w, ObjKind::MUTEX, 0);
            if taken {
                assert_eq!(does(w, 1, lock(m)), Some(0));
            }
            assert_eq!(does(w, 0, unlock(m)), None);
            assert_eq!((w.end, w.end_code, w.end_obj), (End::MISUSE, what.0, m));
        });
    }
    world(2, |w| {
        w.allow_misuse = true;
        let m = make(w, ObjKind::MUTEX, 0);
        assert_eq!(does(w, 1, lock(m)), Some(0));
        assert_eq!(does(w, 0, unlock(m)), Some(0));
        assert_eq!(w.objects[m].owner, NONE);
        w.allow_misuse = false;
    });
}

#[test]
fn a_recursive_mutex_counts() {
    world(2, |w| {
        let m = make(w, ObjKind::MUTEX, MUTEX_RECURSIVE);
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 0, lock(m).with(TRY)), Some(0));
        assert_eq!(does(w, 0, unlock(m)), Some(0));
        assert_eq!(does(w, 1, lock(m).with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 1, unlock(m)), Some(EPERM));
        assert_eq!(does(w, 0, unlock(m)), Some(0));
        assert_eq!(does(w, 1, lock(m).with(TRY)), Some(0));
        assert_eq!(does(w, 0, unlock(m)), Some(EPERM));
    });
}

#[test]
fn an_errorcheck_mutex_says_so() {
    world(2, |w| {
        let m = make(w, ObjKind::MUTEX, MUTEX_ERRORCHECK);
        assert_eq!(does(w, 0, unlock(m)), Some(EPERM));
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 0, lock(m)), Some(EDEADLK));
        assert_eq!(does(w, 0, lock(m).with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 1, unlock(m)), Some(EPERM));
        assert_eq!(does(w, 0, unlock(m)), Some(0));
    });
}

#[test]
fn the_death_of_an_owner_is_handed_on() {
    world(3, |w| {
        w.any_robust = true;
        let m = make(w, ObjKind::MUTEX, ROBUST);
        assert_eq!(does(w, 1, lock(m)), Some(0));
        assert!(w.holds_robust(1) && !w.holds_robust(2));
        assert_eq!(does(w, 2, lock(m)), None);
        w.thread_exit(1);
        assert_eq!(go_on(w, 2, 0), Some(EOWNERDEAD));
        assert_eq!(w.mutex_consistent(0, m), EINVAL);
        assert_eq!(w.mutex_consistent(2, m), 0);
        assert_eq!(does(w, 2, unlock(m)), Some(0));
        assert_eq!(does(w, 2, lock(m)), Some(0));
        w.thread_exit(2);
        assert_ne!(w.objects[m].flags & OWNER_DEAD, 0);
        assert_eq!(does(w, 0, lock(m)), Some(EOWNERDEAD));
        assert_eq!(does(w, 0, unlock(m)), Some(0));
        assert_eq!(does(w, 0, lock(m)), Some(ENOTRECOVERABLE));
    });
}

#[test]
fn a_destroyed_mutex_is_of_no_use() {
    world(2, |w| {
        let m = make(w, ObjKind::MUTEX, 0);
        assert_eq!(does(w, 0, Op::on(Kind::MUTEX_DESTROY, m)), Some(0));
        assert_eq!(does(w, 0, lock(m)), None);
        assert_eq!((w.end, w.end_code), (End::MISUSE, Misuse::USE_DESTROYED.0));
    });
    world(2, |w| {
        let m = make(w, ObjKind::MUTEX, 0);
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 1, Op::on(Kind::MUTEX_DESTROY, m)), None);
        assert_eq!((w.end, w.end_code), (End::MISUSE, Misuse::DESTROY_BUSY.0));
    });
}

#[test]
fn an_address_that_is_used_again_is_a_new_object() {
    world(2, |w| {
        let key = Key::new(SHARED, ObjKind::MUTEX, 4096);
        let m = w.make(key, |_| {}).expect("room");
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(w.make(key, |_| {}), Some(m));
        assert_eq!((w.objects[m].owner, w.objects[m].generation), (NONE, 1));
        assert_eq!(w.find(key), Some(m));
    });
}

#[test]
fn each_waiter_is_an_alternative_of_a_signal() {
    for chosen in 0..2 {
        world(3, |w| {
            let (c, m) = (make(w, ObjKind::COND, 0), make(w, ObjKind::MUTEX, 0));
            let signal = Op::on(Kind::COND_SIGNAL, c);
            assert_eq!(does(w, 0, signal), Some(0), "nobody waits");
            // The queue is in thread order, whoever comes first.
            for t in [2, 1] {
                assert_eq!(does(w, t, lock(m)), Some(0));
                assert_eq!(does(w, t, both(Kind::COND_WAIT, c, m)), None);
                assert_eq!(w.objects[m].owner, NONE);
            }
            w.publish(0, signal);
            assert_eq!(w.choices(0), 2);
            assert_eq!(go_on(w, 0, chosen), Some(0));
            assert_eq!(does(w, 0, lock(m)), Some(0));
            assert_eq!(go_on(w, 1 + chosen, 0), None, "the mutex is taken");
            assert_eq!(does(w, 0, unlock(m)), Some(0));
            assert_eq!(go_on(w, 2 - chosen, 0), None, "the other sleeps on");
            assert_eq!(go_on(w, 1 + chosen, 0), Some(0));
            assert_eq!(w.objects[m].owner, 1 + chosen);
        });
    }
}

#[test]
fn a_broadcast_wakes_all_and_a_destroy_waits_for_them() {
    world(3, |w| {
        let (c, m) = (make(w, ObjKind::COND, 0), make(w, ObjKind::MUTEX, 0));
        for t in [1, 2] {
            assert_eq!(does(w, t, lock(m)), Some(0));
            assert_eq!(does(w, t, both(Kind::COND_WAIT, c, m)), None);
        }
        assert_eq!(does(w, 0, Op::on(Kind::COND_DESTROY, c)), None);
        assert_eq!(does(w, 0, Op::on(Kind::COND_BROADCAST, c)), Some(0));
        assert_eq!(w.choices(1) + w.choices(2), 2);
        assert_eq!(go_on(w, 2, 0), Some(0));
        assert_eq!(go_on(w, 1, 0), None);
        assert_eq!(does(w, 0, Op::on(Kind::COND_DESTROY, c)), Some(0));
        assert_eq!(does(w, 0, Op::on(Kind::COND_SIGNAL, c)), None);
        assert_eq!(w.end_code, Misuse::USE_DESTROYED.0);
    });
}

#[test]
fn a_wait_needs_the_mutex() {
    world(2, |w| {
        let c = make(w, ObjKind::COND, 0);
        let (checked, normal) = (make(w, ObjKind::MUTEX, MUTEX_ERRORCHECK), make(w, ObjKind::MUTEX, 0));
        assert_eq!(does(w, 0, both(Kind::COND_WAIT, c, checked)), Some(EPERM));
        assert_eq!(does(w, 0, both(Kind::COND_WAIT, c, normal)), None);
        assert_eq!((w.end, w.end_code), (End::MISUSE, Misuse::WAIT_UNOWNED.0));
    });
}

#[test]
fn readers_share_and_writers_do_not() {
    world(3, |w| {
        let l = make(w, ObjKind::RWLOCK, 0);
        let (read, write) = (Op::on(Kind::RW_RDLOCK, l), Op::on(Kind::RW_WRLOCK, l));
        let unlock = Op::on(Kind::RW_UNLOCK, l);
        assert_eq!(does(w, 0, read), Some(0));
        assert_eq!(does(w, 0, read), Some(0));
        assert_eq!(does(w, 1, read), Some(0));
        assert_eq!(does(w, 2, write.with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 2, write), None);
        assert_eq!(does(w, 0, unlock), Some(0));
        assert_eq!(does(w, 1, unlock), Some(0));
        assert_eq!(go_on(w, 2, 0), None);
        assert_eq!(does(w, 0, unlock), Some(0));
        assert_eq!(go_on(w, 2, 0), Some(0));
        assert_eq!(does(w, 2, read), Some(EDEADLK));
        assert_eq!(does(w, 2, write), Some(EDEADLK));
        assert_eq!(does(w, 1, read), None);
        assert_eq!(does(w, 0, Op::on(Kind::RW_DESTROY, l)), None);
        assert_eq!((w.end, w.end_code), (End::MISUSE, Misuse::DESTROY_BUSY.0));
    });
}

#[test]
fn a_preferred_writer_keeps_new_readers_out() {
    world(3, |w| {
        let l = make(w, ObjKind::RWLOCK, PREFER_WRITER);
        let (read, write) = (Op::on(Kind::RW_RDLOCK, l), Op::on(Kind::RW_WRLOCK, l));
        assert_eq!(does(w, 0, read), Some(0));
        assert_eq!(does(w, 1, write), None, "announces itself");
        assert_eq!(w.threads[1].pending.kind, Kind::RW_WRWAIT);
        assert_eq!(does(w, 2, read), None);
        assert_eq!(does(w, 0, Op::on(Kind::RW_UNLOCK, l)), Some(0));
        assert_eq!(go_on(w, 1, 0), Some(0));
        assert_eq!(does(w, 1, Op::on(Kind::RW_UNLOCK, l)), Some(0));
        assert_eq!(go_on(w, 2, 0), Some(0));
    });
}

#[test]
fn a_preferred_writer_with_a_deadline_keeps_readers_out_until_it_gives_up() {
    world(3, |w| {
        w.timeouts_any = true;
        let l = make(w, ObjKind::RWLOCK, PREFER_WRITER);
        let read = Op::on(Kind::RW_RDLOCK, l);
        assert_eq!(does(w, 0, read), Some(0));
        assert_eq!(does(w, 1, Op::on(Kind::RW_WRLOCK, l).until(1)), None, "announces itself");
        assert_eq!(does(w, 2, read.with(TRY)), Some(EBUSY));
        assert_eq!(go_on(w, 1, 0), Some(ETIMEDOUT));
        assert_eq!(does(w, 2, read.with(TRY)), Some(0));
    });
}

#[test]
fn a_circle_of_inherited_priorities_is_refused() {
    let crossing = |kind: u32, deadline: bool, then: &dyn Fn(&mut World)| {
        world(2, |w| {
            w.timeouts_any = true;
            w.note_mutex(INHERITS);
            let (m, n) = (make(w, ObjKind::MUTEX, kind | INHERITS), make(w, ObjKind::MUTEX, kind | INHERITS));
            let lock = |m: u32| Op::on(Kind::MUTEX_LOCK, m);
            assert_eq!(does(w, 0, lock(m)), Some(0));
            assert_eq!(does(w, 1, lock(n)), Some(0));
            w.publish(0, lock(n));
            w.publish(1, if deadline { lock(m).until(1) } else { lock(m) });
            then(w);
        });
    };
    crossing(MUTEX_NORMAL, false, &|w| assert_eq!((w.end, w.never_come), (End::CYCLE, 0)));
    crossing(MUTEX_ERRORCHECK, false, &|w| assert_eq!((w.end, w.never_come), (End::ASSERT, 0)));
    crossing(MUTEX_NORMAL, true, &|w| assert_eq!((w.end, w.never_come), (End::RUNNING, CIRCLE_INHERITED)));
}

#[test]
fn a_spin_lock_of_zeros_is_locked() {
    world(1, |w| {
        w.allow_misuse = true;
        let s = make(w, ObjKind::SPIN, NEVER_FREE);
        let lock = Op::on(Kind::SPIN_LOCK, s);
        assert_eq!(does(w, 0, lock.with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 0, Op::on(Kind::SPIN_UNLOCK, s)), Some(0));
        assert_eq!(does(w, 0, lock), Some(0));
    });
}

#[test]
fn a_reader_that_wants_to_write_is_a_circle() {
    world(2, |w| {
        let l = make(w, ObjKind::RWLOCK, 0);
        assert_eq!(does(w, 0, Op::on(Kind::RW_RDLOCK, l)), Some(0));
        assert_eq!(does(w, 0, Op::on(Kind::RW_WRLOCK, l)), None);
        assert_eq!((w.end, w.n_cycle), (End::CYCLE, 1));
    });
}

#[test]
fn a_barrier_opens_for_the_last() {
    world(3, |w| {
        let b = make(w, ObjKind::BARRIER, 0);
        w.objects[b].count = 3;
        let wait = Op::on(Kind::BARRIER_WAIT, b);
        for _ in 0..2 {
            assert_eq!(does(w, 2, wait), None);
            assert_eq!(does(w, 0, wait), None);
            assert_eq!(go_on(w, 2, 0), None);
            assert_eq!(does(w, 1, wait), Some(1), "the serial thread");
            assert_eq!(go_on(w, 0, 0), Some(0));
            assert_eq!(go_on(w, 2, 0), Some(0));
        }
    });
}

#[test]
fn once_is_once() {
    world(3, |w| {
        let o = make(w, ObjKind::ONCE, 0);
        let once = Op::on(Kind::ONCE, o);
        assert_eq!(does(w, 0, once), Some(0));
        assert_eq!(does(w, 1, once), None);
        w.once_over(o, false);
        assert_eq!(go_on(w, 1, 0), Some(0), "the first was left by an exception");
        assert_eq!(does(w, 2, once), None);
        w.once_over(o, true);
        assert_eq!(go_on(w, 2, 0), Some(1));
    });
}

#[test]
fn semaphores_count() {
    world(2, |w| {
        let s = make(w, ObjKind::SEM, 0);
        let (wait, post) = (Op::on(Kind::SEM_WAIT, s), Op::on(Kind::SEM_POST, s));
        assert_eq!(does(w, 0, wait.with(TRY)), Some(EAGAIN));
        assert_eq!(does(w, 0, wait), None);
        assert_eq!(does(w, 1, post), Some(0));
        assert_eq!(go_on(w, 0, 0), Some(0));
        assert_eq!(does(w, 0, Op::on(Kind::SEM_GET, s)), Some(0));
        assert_eq!(w.threads[0].out[0], 0);
        w.objects[s].value = i32::MAX;
        assert_eq!(does(w, 0, post), Some(EOVERFLOW));
    });
}

fn semop(w: &mut World, t: Tid, set: u32, ops: &[(u16, i16, i16)]) -> Option<i64> {
    semop_with(w, t, set, ops, 0)
}

fn semop_with(w: &mut World, t: Tid, set: u32, ops: &[(u16, i16, i16)], flags: u8) -> Option<i64> {
    w.threads[t].n_sembuf = ops.len() as u32;
    for (i, &(num, op, flags)) in ops.iter().enumerate() {
        w.threads[t].sembuf[i] = SemBuf { num, op, flags };
    }
    let mask = ops.iter().fold(0, |mask, (num, ..)| mask | 1 << num);
    does(w, t, Op { mask, ..Op::on(Kind::SYSV_OP, set).with(flags) })
}

#[test]
fn a_semop_is_all_or_nothing() {
    world(2, |w| {
        let set = w.sysv_make(1, 2).expect("room");
        w.sysv_set(0, set, 0, 1);
        assert_eq!(semop(w, 0, set, &[(0, -1, 0), (1, -1, IPC_NOWAIT)]), Some(EAGAIN));
        assert_eq!(w.sysv_value(set, 0).value, 1);
        assert_eq!(semop_with(w, 0, set, &[(0, -1, 0), (1, -1, 0)], TRY), Some(EAGAIN), "begins to wait");
        assert_eq!(semop_with(w, 0, set, &[(0, -1, 0), (1, -1, 0)], PARTIAL), None);
        assert_eq!((w.sysv_waiting(set, 1, false), w.sysv_waiting(set, 1, true)), (1, 0));
        assert_eq!(semop(w, 1, set, &[(1, 2, 0)]), Some(0));
        assert_eq!(w.sysv_waiting(set, 1, false), 0);
        assert_eq!(semop(w, 1, set, &[(1, -1, 0)]), None, "the one that sleeps goes first");
        assert_eq!(go_on(w, 0, 0), Some(0));
        assert_eq!(go_on(w, 1, 0), Some(0));
        assert_eq!(semop(w, 1, set, &[(1, 1, 0)]), Some(0));
        assert_eq!((w.sysv_value(set, 0).value, w.sysv_value(set, 1).value), (0, 1));
        assert_eq!(semop(w, 1, set, &[(1, 0, 0)]), None, "waits for zero");
        assert_eq!(semop(w, 0, set, &[(1, -1, 0), (1, 0, 0)]), Some(0), "sees its own decrement");
        assert_eq!(go_on(w, 1, 0), Some(0));
        assert_eq!(semop(w, 0, set, &[(2, 1, 0)]), Some(EFBIG));
        assert_eq!(semop(w, 0, set, &[(0, 32767, 0), (0, 1, 0)]), Some(ERANGE));
        assert_eq!(does(w, 0, both(Kind::SYSV_CTL, set, 0).arg(2)), Some(0));
        assert_eq!(semop(w, 0, set, &[(0, 1, 0)]), Some(EINVAL), "looked up after the removal");
    });
}

#[test]
fn the_end_of_a_process_undoes() {
    world(1, |w| {
        let set = w.sysv_make(1, 1).expect("room");
        w.sysv_set(0, set, 0, 2);
        let (child, t) = w.fork(0).expect("room");
        assert!(!w.exit_is_visible(child, true));
        assert_eq!(semop(w, t, set, &[(0, -2, SEM_UNDO)]), Some(0));
        assert!(w.exit_is_visible(child, true));
        assert_eq!(semop(w, t, set, &[(0, 1, SEM_UNDO)]), Some(0));
        w.process_exit(child, 0);
        assert_eq!(w.sysv_value(set, 0).value, 2);
    });
}

#[test]
fn a_join_waits_for_the_end() {
    world(3, |w| {
        let join = |t: Tid| Op::on(Kind::JOIN, t);
        assert_eq!(does(w, 0, join(0)), Some(EDEADLK), "itself");
        assert_eq!(does(w, 0, join(1).with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 0, join(1)), None);
        w.thread_exit(1);
        assert_eq!(go_on(w, 0, 0), Some(0));
        w.threads[2].detached = true;
        assert_eq!(does(w, 0, join(2)), Some(EINVAL));
        assert_eq!(does(w, 0, join(77)), Some(ESRCH));
        assert_eq!(does(w, 2, join(1)), None, "joined already");
        assert_eq!((w.end, w.end_code), (End::MISUSE, Misuse::JOIN_TWICE.0));
    });
}

#[test]
fn a_cancelled_wait_returns() {
    world(2, |w| {
        let s = make(w, ObjKind::SEM, 0);
        let wait = Op::on(Kind::SEM_WAIT, s);
        assert_eq!(does(w, 1, wait.with(CANCEL_POINT)), None);
        assert_eq!(does(w, 0, Op::on(Kind::CANCEL, 1)), Some(0));
        assert_eq!(go_on(w, 1, 0), Some(EINTR));
        assert_eq!(does(w, 1, wait), None, "no cancellation point");
    });
}

#[test]
fn a_woken_waiter_that_is_cancelled_passes_its_wake_up_on() {
    world(4, |w| {
        let (c, m) = (make(w, ObjKind::COND, 0), make(w, ObjKind::MUTEX, 0));
        let wait = |flags| Op { obj2: m, ..Op::on(Kind::COND_WAIT, c).with(flags) };
        for t in 1..4 {
            assert_eq!(does(w, t, Op::on(Kind::MUTEX_LOCK, m)), Some(0));
            assert_eq!(does(w, t, wait(CANCEL_POINT)), None);
        }
        assert_eq!(does(w, 0, Op::on(Kind::COND_SIGNAL, c)), Some(0));
        assert!(w.threads[1].woken);
        assert_eq!(w.choices(1), 1, "the mutex is free");
        assert_eq!(does(w, 0, Op::on(Kind::CANCEL, 1)), Some(0));
        assert_eq!(w.choices(1), 3, "or it goes to one of two others");
        assert_eq!(go_on(w, 1, 2), None, "it acquires the mutex in a step of its own");
        assert_eq!([2, 3].map(|t| w.threads[t].woken), [false, true]);
        assert_eq!(w.objects[c].n_waiters, 1);
        assert_eq!(go_on(w, 1, 0), Some(EINTR));
    });
}

#[test]
fn children_are_waited_for_and_reaped() {
    world(1, |w| {
        let wait = Op::new(Kind::WAIT).arg(-1);
        assert_eq!(does(w, 0, wait), Some(ECHILD));
        let (first, _) = w.fork(0).expect("room");
        let (second, _) = w.fork(0).expect("room");
        let vpid = |w: &World, p: u32| w.procs[p].vpid as i64;
        assert_eq!(does(w, 0, wait.with(WNOHANG)), Some(EAGAIN));
        assert_eq!(does(w, 0, wait), None);
        w.process_exit(second, 7 << 8);
        assert_eq!(does(w, 0, Op::new(Kind::WAIT).arg(vpid(w, first))), None);
        assert_eq!(does(w, 0, wait.with(WNOWAIT)), Some(0));
        assert_eq!(does(w, 0, wait), Some(0));
        assert_eq!(w.threads[0].out[..2], [vpid(w, second), 7 << 8]);
        assert_eq!(does(w, 0, Op::new(Kind::WAIT).arg(vpid(w, second))), Some(ECHILD));
        w.process_exit(first, 0);
        assert_eq!(does(w, 0, wait), Some(0));
        assert_eq!(does(w, 0, wait), Some(ECHILD));
    });
}

#[test]
fn a_fork_copies_what_is_private() {
    world(2, |w| {
        let key = |space| Key::new(space, ObjKind::MUTEX, 64);
        let m = w.make(key(0), |_| {}).expect("room");
        let other = w.make(Key::new(0, ObjKind::MUTEX, 128), |_| {}).expect("room");
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 1, lock(other)), Some(0));
        let (child, t) = w.fork(0).expect("room");
        let copy = w.find(key(child)).expect("a copy");
        assert_eq!((w.objects[m].owner, w.objects[copy].owner), (0, t));
        assert_eq!(does(w, t, unlock(copy)), Some(0));
        let held = w.find(Key::new(child, ObjKind::MUTEX, 128)).expect("a copy");
        assert_eq!(does(w, t, lock(held)), None, "held by a thread that the child lacks");
    });
}

/// Runs what is enabled until nothing is; the kinds of operations that had their turn.
fn run(arena: &mut Arena) -> Vec<(Tid, Applied)> {
    let mut done = Vec::new();
    while let Decision::Run(t) = arena.step() {
        let applied = arena.world.perform(t, arena.world.value);
        done.push((t, applied));
        if matches!(applied, Applied::Done(_)) {
            arena.world.thread_exit(t);
        }
    }
    done
}

#[test]
fn timeouts_fire_in_order_when_nothing_else_can_run() {
    with_threads(3, |arena| {
        let s = make(&mut arena.world, ObjKind::SEM, 0);
        let wait = Op::on(Kind::SEM_WAIT, s);
        arena.world.publish(0, wait.until(START + 3_000));
        arena.world.publish(1, wait.until(START + 2_000));
        arena.world.publish(2, Op::new(Kind::SLEEP).until(START + 2_500));
        let done = run(arena);
        let expected = [(1, Applied::Done(ETIMEDOUT)), (2, Applied::Done(0)), (0, Applied::Done(ETIMEDOUT))];
        assert_eq!(done, expected);
        assert_eq!(arena.world.end, End::FINISHED);
    });
}

#[test]
fn a_timeout_that_finds_its_mutex_taken_is_no_deadlock() {
    with_threads(2, |arena| {
        let w = &mut arena.world;
        let (c, m) = (make(w, ObjKind::COND, 0), make(w, ObjKind::MUTEX, 0));
        assert_eq!(does(w, 0, lock(m)), Some(0));
        assert_eq!(does(w, 0, both(Kind::COND_WAIT, c, m).until(START + 1_000)), None);
        assert_eq!(does(w, 1, lock(m)), Some(0));
        w.publish(1, Op::new(Kind::SLEEP).until(START + 2_000));
        assert_eq!(arena.step(), Decision::Run(0), "it leaves the queue");
        assert_eq!(arena.world.perform(0, 0), Applied::Parked);
        assert_eq!(arena.step(), Decision::Run(1), "the later deadline fires too");
        assert_eq!(arena.world.perform(1, 0), Applied::Done(0));
        assert_eq!(does(&mut arena.world, 1, unlock(m)), Some(0));
        assert_eq!(go_on(&mut arena.world, 0, 0), Some(ETIMEDOUT));
    });
}

#[test]
fn a_yield_waits_for_somebody_to_move() {
    with_threads(2, |arena| {
        let s = make(&mut arena.world, ObjKind::SEM, 0);
        arena.world.publish(0, Op::new(Kind::YIELD));
        arena.world.publish(1, Op::on(Kind::SEM_POST, s));
        arena.world.current = 0;
        let order: Vec<Tid> = run(arena).into_iter().map(|(t, _)| t).collect();
        assert_eq!(order, [1, 0]);
    });
}

#[test]
fn the_trail_tells_executions_apart() {
    let trail = |current: Tid, object: usize| {
        let trail = std::cell::Cell::new(0);
        with_threads(2, |arena| {
            let objects = [0; 2].map(|_| make(&mut arena.world, ObjKind::SEM, 0));
            arena.world.publish(0, Op::on(Kind::SEM_POST, objects[object]));
            arena.world.publish(1, Op::on(Kind::SEM_POST, objects[0]));
            arena.world.current = current;
            let order: Vec<Tid> = run(arena).into_iter().map(|(t, _)| t).collect();
            assert_eq!(order, [current, 1 - current]);
            trail.set(arena.trail);
        });
        trail.get()
    };
    let one = trail(0, 0);
    assert_eq!(one, trail(0, 0));
    assert_ne!(one, trail(1, 0), "another order");
    assert_ne!(one, trail(0, 1), "another operation");
}

#[test]
fn the_lock_of_a_stream_is_a_threads_own() {
    world(3, |w| {
        let s = make(w, ObjKind::STREAM, 0);
        let (take, give) = (Op::on(Kind::STREAM_LOCK, s), Op::on(Kind::STREAM_UNLOCK, s));
        assert_eq!(does(w, 0, take), Some(0));
        assert_eq!(does(w, 0, take), Some(0), "its owner may take it again");
        assert_eq!(does(w, 1, take.with(TRY)), Some(EBUSY));
        assert_eq!(does(w, 1, take), None);
        assert_eq!(does(w, 0, give), Some(0));
        assert_eq!(w.choices(1), 0, "once more");
        assert_eq!(does(w, 2, give), Some(0), "nobody looks whose it is");
        assert_eq!(go_on(w, 1, 0), Some(0));
        assert_eq!((w.objects[s].owner, w.threads[0].streams, w.threads[1].streams), (1, 0, 1));
        w.stream_found(s, 2);
        assert_eq!((w.objects[s].owner, w.threads[1].streams), (2, 0), "as its memory says");
    });
    world(2, |w| {
        let (a, b) = (make(w, ObjKind::STREAM, 0), make(w, ObjKind::MUTEX, 0));
        assert_eq!(does(w, 0, Op::on(Kind::STREAM_LOCK, a)), Some(0));
        assert_eq!(does(w, 1, lock(b)), Some(0));
        assert_eq!(does(w, 0, lock(b)), None);
        assert_eq!(does(w, 1, Op::on(Kind::STREAM_LOCK, a)), None);
        assert_eq!((w.end, w.n_cycle), (End::CYCLE, 2));
    });
}

#[test]
fn of_many_calls_few_are_guarded() {
    let mut machine = Machine::new();
    let control = &mut machine.arena().control;
    let count = |control: &Control, calls: Range<u32>| calls.filter(|&n| control.guards(n)).count();
    assert_eq!(count(control, 0..1000), 0);
    (control.guarded, control.guarded_thickly) = (1000, 0);
    assert_eq!(count(control, 0..2000), 1000);
    (control.guarded, control.guarded_thickly) = (1 << 24, 64);
    let mut of_all = BTreeSet::new();
    for seed in 0..16 {
        control.guarded_seed = seed;
        assert_eq!(count(control, 0..64), 64);
        for doubled in 6..18 {
            // Eight on average.
            assert!(count(control, 1 << doubled..2 << doubled) < 30, "{doubled}");
        }
        assert!((50..160).contains(&count(control, 64..1 << 18)));
        of_all.extend((64..1000).filter(|&n| control.guards(n)));
    }
    // Other ones by each seed, and of a loop of four calls all four.
    assert!(of_all.len() > 300, "{}", of_all.len());
    assert!((0..4).all(|at| of_all.iter().filter(|&n| n % 4 == at).count() > 50));
    (control.guarded, control.guarded_thickly) = (GUARDED_ALWAYS, 0);
    assert_eq!(count(control, 0..2000), 2000);
}
