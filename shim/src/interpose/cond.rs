//! pthread_cond_*, pthread_barrier_*.

use vsrun_model::inject::SPURIOUS;
use vsrun_model::object::ObjKind;
use vsrun_model::{op, Kind, Op};

use super::{thread, timed};
use crate::{gate, inject, local, sync};

/// Waits on the condition variable at `c` with the mutex at `m`.
pub fn wait(c: u64, m: u64, shape: impl FnOnce(Op) -> Result<Op, i32>) -> i32 {
    thread::cancellation_point();
    let mutex = sync::mutex(m);
    if inject::strikes(SPURIOUS) {
        // Woken by nobody: the mutex has been free for a while.
        gate::pass_mirrored(Op::on(Kind::MUTEX_UNLOCK, mutex), Some((m, mutex)));
        return gate::pass_mirrored(Op::on(Kind::MUTEX_LOCK, mutex), Some((m, mutex))) as i32;
    }
    let mut op = Op::on(Kind::COND_WAIT, sync::cond(c)).with(op::CANCEL_POINT);
    op.obj2 = mutex;
    let op = match shape(op) {
        Ok(op) => op,
        Err(error) => return error,
    };
    let result = gate::pass_mirrored(op, Some((m, mutex))) as i32;
    if result == libc::EINTR {
        thread::cancellation_point();
        return 0;
    }
    result
}

/// Wakes one waiter or all.
pub fn wake(kind: Kind, c: u64) -> i32 {
    gate::pass(Op::on(kind, sync::cond(c))) as i32
}

/// Destroys the condition variable at `c`.
pub fn destroy(c: u64) -> i32 {
    let result = gate::pass(Op::on(Kind::COND_DESTROY, sync::cond(c))) as i32;
    sync::cond_gone(c);
    result
}

#[no_mangle]
extern "C" fn pthread_cond_init(c: u64, attr: u64) -> i32 {
    sync::cond_init(c, attr);
    0
}

#[no_mangle]
extern "C" fn pthread_cond_destroy(c: u64) -> i32 {
    destroy(c)
}

#[no_mangle]
extern "C" fn pthread_cond_wait(c: u64, m: u64) -> i32 {
    wait(c, m, Ok)
}

#[no_mangle]
extern "C" fn pthread_cond_timedwait(c: u64, m: u64, abstime: u64) -> i32 {
    let clock = if sync::cond_is_monotonic(c) { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
    wait(c, m, |op| timed(op, clock, abstime))
}

#[no_mangle]
extern "C" fn pthread_cond_clockwait(c: u64, m: u64, clock: i32, abstime: u64) -> i32 {
    wait(c, m, |op| timed(op, clock, abstime))
}

#[no_mangle]
extern "C" fn pthread_cond_signal(c: u64) -> i32 {
    wake(Kind::COND_SIGNAL, c)
}

#[no_mangle]
extern "C" fn pthread_cond_broadcast(c: u64) -> i32 {
    wake(Kind::COND_BROADCAST, c)
}

#[no_mangle]
extern "C" fn pthread_barrier_init(b: u64, _attr: u64, count: u32) -> i32 {
    if count == 0 || count >= 1 << 31 {
        return libc::EINVAL;
    }
    sync::zero(b, 32);
    let id = sync::create(ObjKind::BARRIER, b, 0);
    local::world().objects[id].count = count;
    0
}

#[no_mangle]
extern "C" fn pthread_barrier_destroy(b: u64) -> i32 {
    gate::pass(Op::on(Kind::BARRIER_DESTROY, sync::barrier(b))) as i32
}

#[no_mangle]
extern "C" fn pthread_barrier_wait(b: u64) -> i32 {
    gate::pass(Op::on(Kind::BARRIER_WAIT, sync::barrier(b))) as i32
}
