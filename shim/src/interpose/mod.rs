//! The interposed symbols: tables that turn a libc call into an operation of the model. No logic beyond reading
//! arguments and giving back what the call gives back.

mod c11;
mod cond;
mod io;
#[cfg(feature = "enomem")]
pub mod malloc;
mod misc;
mod mqueue;
mod msg;
mod mutex;
mod rwlock;
mod sem;
mod thread;

use vsrun_model::Op;

use crate::time;

/// The operation, giving up at the absolute time at `abstime` on `clock`.
fn timed(op: Op, clock: i32, abstime: u64) -> Result<Op, i32> {
    if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        return Err(libc::EINVAL);
    }
    match time::timespec(abstime) {
        Some(ns) => Ok(op.until(time::absolute(clock, ns))),
        None => Err(libc::EINVAL),
    }
}
