//! Mutexes, spin locks, read-write locks, condition variables, barriers.

use vsrun_model::object::LAST_IGNORED;
use vsrun_model::{inject as fault, op, Kind, ObjId, Op};

use super::time::timed;
use super::used::used;
use super::{sync, thread};
use crate::gate::{self, inject, local, machine};
use crate::sys::{errno::EINTR, load, ret_pthread};

/// An operation on the lock at `addr`, which `of` looks up and whose memory shows whether it is held; `shape` adds flags or a deadline.
fn pass(kind: Kind, addr: u64, of: fn(u64) -> ObjId, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    used(addr, kind);
    let id = of(addr);
    ret_pthread(match shape(Op::on(kind, id)) {
        Ok(op) => gate::pass_mirrored(op, Some((addr, id))),
        Err(error) => error,
    })
}

/// Locks the mutex at `m`.
pub fn lock(m: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    pass(Kind::MUTEX_LOCK, m, sync::mutex, shape)
}

/// Locks the mutex at `m`, giving up at an absolute time. libc looks at that only where it has to wait: one before the beginning of
/// the clock has passed, whatever its nanoseconds are.
pub fn timed_lock(m: u64, clock: i32, abstime: u64) -> i32 {
    let (s, n): (i64, i64) = (load(abstime), load(abstime + 8));
    let odd = !(0..1_000_000_000).contains(&n);
    if !odd || !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        return lock(m, |op| timed(op, clock, abstime));
    }
    match lock(m, |op| Ok(op.with(op::TRY))) {
        libc::EBUSY if s < 0 => libc::ETIMEDOUT,
        libc::EBUSY => libc::EINVAL,
        result => result,
    }
}

/// Unlocks the mutex at `m`.
pub fn unlock(m: u64) -> i32 {
    pass(Kind::MUTEX_UNLOCK, m, sync::mutex, Ok)
}

/// Destroys the mutex at `m`.
pub fn mutex_destroy(m: u64) -> i32 {
    used(m, Kind::MUTEX_DESTROY);
    let result = gate::pass(Op::on(Kind::MUTEX_DESTROY, sync::mutex(m)));
    if result == 0 {
        sync::mutex_gone(m);
    }
    ret_pthread(result)
}

/// pthread_spin_init.
pub fn spin_init(s: u64) -> i32 {
    sync::spin_init(s);
    0
}

/// Locks or unlocks the spin lock at `s`.
pub fn spin(kind: Kind, s: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    pass(kind, s, sync::spin, shape)
}

/// Locks or unlocks the read-write lock at `l`.
pub fn rwlock(kind: Kind, l: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    pass(kind, l, sync::rwlock, shape)
}

/// Destroys the read-write lock at `l`.
pub fn rwlock_destroy(l: u64) -> i32 {
    used(l, Kind::RW_DESTROY);
    let result = gate::pass(Op::on(Kind::RW_DESTROY, sync::rwlock(l)));
    sync::rwlock_gone(l);
    ret_pthread(result)
}

/// Waits on the condition variable at `c` with the mutex at `m`.
/// glibc heeds a request to end once it has released the mutex.
pub fn cond_wait(c: u64, m: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    used(c, Kind::COND_WAIT);
    used(m, Kind::MUTEX_UNLOCK);
    let mutex = sync::mutex(m);
    if inject::strikes(fault::SPURIOUS) {
        // Woken by nobody: the mutex has been free for a while.
        gate::pass_mirrored(Op::on(Kind::MUTEX_UNLOCK, mutex), Some((m, mutex)));
        return ret_pthread(gate::pass_mirrored(Op::on(Kind::MUTEX_LOCK, mutex), Some((m, mutex))));
    }
    let mut op = Op::on(Kind::COND_WAIT, sync::cond(c)).with(op::CANCEL_POINT);
    op.obj2 = mutex;
    let op = match shape(op) {
        Ok(op) => op,
        Err(error) => return ret_pthread(error),
    };
    match gate::pass_mirrored(op, Some((m, mutex))) {
        EINTR => {
            thread::cancellation_point();
            0
        }
        result => ret_pthread(result),
    }
}

/// Wakes one waiter of the condition variable at `c` or all.
pub fn cond_wake(kind: Kind, c: u64) -> i32 {
    used(c, kind);
    ret_pthread(gate::pass(Op::on(kind, sync::cond(c))))
}

/// Destroys the condition variable at `c`.
pub fn cond_destroy(c: u64) -> i32 {
    used(c, Kind::COND_DESTROY);
    let result = gate::pass(Op::on(Kind::COND_DESTROY, sync::cond(c)));
    sync::cond_gone(c);
    ret_pthread(result)
}

/// Destroys the barrier at `b`.
pub fn barrier_destroy(b: u64) -> i32 {
    used(b, Kind::BARRIER_DESTROY);
    ret_pthread(gate::pass(Op::on(Kind::BARRIER_DESTROY, sync::barrier(b))))
}

/// pthread_barrier_init.
pub fn barrier_init(b: u64, attr: u64, count: u32) -> i32 {
    if count == 0 || count >= 1 << 31 {
        return libc::EINVAL;
    }
    sync::barrier_init(b, attr, count);
    0
}

/// pthread_barrier_wait, by the call that returns to `caller`: the model tells one of the threads 1, the others 0.
pub fn barrier_wait(b: u64, caller: u64) -> i32 {
    used(b, Kind::BARRIER_WAIT);
    let flags = if machine().is_ignored(local().cur, caller) { LAST_IGNORED } else { 0 };
    match gate::pass(Op::on(Kind::BARRIER_WAIT, sync::barrier(b)).with(flags)) {
        0 => 0,
        _ => libc::PTHREAD_BARRIER_SERIAL_THREAD,
    }
}
