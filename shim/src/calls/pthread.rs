//! Mutexes, spin locks, read-write locks, condition variables, barriers.

use vsrun_model::object::LAST_IGNORED;
use vsrun_model::{inject as fault, op, Kind, ObjId, Op};

use super::time::timed;
use super::used::{site, used};
use super::{sync, thread};
use crate::gate::{self, inject, local, machine};
use crate::sys::{errno::EINTR, load, ret_pthread};

/// What is done to an object, and by which function.
#[derive(Clone, Copy)]
pub struct Does {
    kind: Kind,
    site: u32,
}

impl Does {
    /// The function of that name does what `kind` is.
    const fn by(function: &str, kind: Kind) -> Does {
        Does { kind, site: site(function) }
    }
}

const LOCKS: Does = Does::by("pthread_mutex_lock", Kind::MUTEX_LOCK);
const UNLOCKS: Does = Does::by("pthread_mutex_unlock", Kind::MUTEX_UNLOCK);
const DESTROYS: Does = Does::by("pthread_mutex_destroy", Kind::MUTEX_DESTROY);
const WAITS: Does = Does::by("pthread_cond_wait", Kind::COND_WAIT);
const DESTROYS_COND: Does = Does::by("pthread_cond_destroy", Kind::COND_DESTROY);
const DESTROYS_RWLOCK: Does = Does::by("pthread_rwlock_destroy", Kind::RW_DESTROY);
const MEETS: Does = Does::by("pthread_barrier_wait", Kind::BARRIER_WAIT);
const DESTROYS_BARRIER: Does = Does::by("pthread_barrier_destroy", Kind::BARRIER_DESTROY);
/// What spin locks, read-write locks and condition variables are for.
pub const SPINS: Does = Does::by("pthread_spin_lock", Kind::SPIN_LOCK);
/// See [`SPINS`].
pub const ENDS_SPIN: Does = Does::by("pthread_spin_unlock", Kind::SPIN_UNLOCK);
/// See [`SPINS`].
pub const READS: Does = Does::by("pthread_rwlock_rdlock", Kind::RW_RDLOCK);
/// See [`SPINS`].
pub const WRITES: Does = Does::by("pthread_rwlock_wrlock", Kind::RW_WRLOCK);
/// See [`SPINS`].
pub const LEAVES: Does = Does::by("pthread_rwlock_unlock", Kind::RW_UNLOCK);
/// See [`SPINS`].
pub const WAKES_ONE: Does = Does::by("pthread_cond_signal", Kind::COND_SIGNAL);
/// See [`SPINS`].
pub const WAKES_ALL: Does = Does::by("pthread_cond_broadcast", Kind::COND_BROADCAST);

/// An operation on the lock at `addr`, which `of` looks up and whose memory shows whether it is held; `shape` adds flags or a deadline.
fn pass(does: Does, addr: u64, of: fn(u64) -> ObjId, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    used(addr, does.site);
    let (kind, id) = (does.kind, of(addr));
    ret_pthread(match shape(Op::on(kind, id)) {
        Ok(op) => gate::pass_mirrored(op, Some((addr, id))),
        Err(error) => error,
    })
}

/// Locks the mutex at `m`.
pub fn lock(m: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    pass(LOCKS, m, sync::mutex, shape)
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
    pass(UNLOCKS, m, sync::mutex, Ok)
}

/// Destroys the mutex at `m`.
pub fn mutex_destroy(m: u64) -> i32 {
    used(m, DESTROYS.site);
    let result = gate::pass(Op::on(DESTROYS.kind, sync::mutex(m)));
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
pub fn spin(does: Does, s: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    pass(does, s, sync::spin, shape)
}

/// Locks or unlocks the read-write lock at `l`.
pub fn rwlock(does: Does, l: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    pass(does, l, sync::rwlock, shape)
}

/// Destroys the read-write lock at `l`.
pub fn rwlock_destroy(l: u64) -> i32 {
    used(l, DESTROYS_RWLOCK.site);
    let result = gate::pass(Op::on(DESTROYS_RWLOCK.kind, sync::rwlock(l)));
    sync::rwlock_gone(l);
    ret_pthread(result)
}

/// Waits on the condition variable at `c` with the mutex at `m`.
/// glibc heeds a request to end once it has released the mutex.
pub fn cond_wait(c: u64, m: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    used(c, WAITS.site);
    used(m, WAITS.site);
    let mutex = sync::mutex(m);
    if inject::strikes(fault::SPURIOUS) {
        // Woken by nobody: the mutex has been free for a while.
        gate::pass_mirrored(Op::on(Kind::MUTEX_UNLOCK, mutex), Some((m, mutex)));
        return ret_pthread(gate::pass_mirrored(Op::on(Kind::MUTEX_LOCK, mutex), Some((m, mutex))));
    }
    let mut op = Op::on(WAITS.kind, sync::cond(c)).with(op::CANCEL_POINT);
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
pub fn cond_wake(does: Does, c: u64) -> i32 {
    used(c, does.site);
    ret_pthread(gate::pass(Op::on(does.kind, sync::cond(c))))
}

/// Destroys the condition variable at `c`.
pub fn cond_destroy(c: u64) -> i32 {
    used(c, DESTROYS_COND.site);
    let result = gate::pass(Op::on(DESTROYS_COND.kind, sync::cond(c)));
    sync::cond_gone(c);
    ret_pthread(result)
}

/// Destroys the barrier at `b`.
pub fn barrier_destroy(b: u64) -> i32 {
    used(b, DESTROYS_BARRIER.site);
    ret_pthread(gate::pass(Op::on(DESTROYS_BARRIER.kind, sync::barrier(b))))
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
    used(b, MEETS.site);
    let flags = if machine().is_ignored(local().cur, caller) { LAST_IGNORED } else { 0 };
    match gate::pass(Op::on(MEETS.kind, sync::barrier(b)).with(flags)) {
        0 => 0,
        _ => libc::PTHREAD_BARRIER_SERIAL_THREAD,
    }
}
