//! Condition variables and barriers.

use vsrun_model::inject::SPURIOUS;
use vsrun_model::{op, Kind, Op};

use super::{sync, thread};
use crate::gate::{self, inject};

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

/// pthread_barrier_init.
pub fn barrier_init(b: u64, count: u32) -> i32 {
    if count == 0 || count >= 1 << 31 {
        return libc::EINVAL;
    }
    sync::barrier_init(b, count);
    0
}
