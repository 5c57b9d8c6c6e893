//! C11 threads.h: mtx_*, cnd_*, thrd_yield, thrd_sleep. Threads themselves go through clone.

use vsrun_model::{op, Kind, Op};

use crate::calls::time::timed;
use crate::calls::{cond, mutex, sync};
use crate::gate;

const SUCCESS: i32 = 0;
const BUSY: i32 = 1;
const ERROR: i32 = 2;
const TIMEDOUT: i32 = 4;

/// mtx_recursive of the type.
const RECURSIVE: i32 = 1;

fn outcome(error: i32) -> i32 {
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ETIMEDOUT => TIMEDOUT,
        _ => ERROR,
    }
}

symbols! {
    fn mtx_init(m: u64, kind: i32) -> i32 = {
        let attr: u32 = if kind & RECURSIVE != 0 { 1 } else { 0 };
        sync::mutex_init(m, &attr as *const u32 as u64);
        SUCCESS
    };
    fn mtx_destroy(m: u64) = { mutex::destroy(m); };
    fn mtx_lock(m: u64) -> i32 = outcome(mutex::lock(m, Ok));
    fn mtx_trylock(m: u64) -> i32 = outcome(mutex::lock(m, |op| Ok(op.with(op::TRY))));
    fn mtx_timedlock(m: u64, abstime: u64) -> i32 =
        outcome(mutex::lock(m, |op| timed(op, libc::CLOCK_REALTIME, abstime)));
    fn mtx_unlock(m: u64) -> i32 = outcome(mutex::unlock(m));
    fn cnd_init(c: u64) -> i32 = {
        sync::cond_init(c, 0);
        SUCCESS
    };
    fn cnd_destroy(c: u64) = { cond::destroy(c); };
    fn cnd_wait(c: u64, m: u64) -> i32 = outcome(cond::wait(c, m, Ok));
    fn cnd_timedwait(c: u64, m: u64, abstime: u64) -> i32 =
        outcome(cond::wait(c, m, |op| timed(op, libc::CLOCK_REALTIME, abstime)));
    fn cnd_signal(c: u64) -> i32 = outcome(cond::wake(Kind::COND_SIGNAL, c));
    fn cnd_broadcast(c: u64) -> i32 = outcome(cond::wake(Kind::COND_BROADCAST, c));
    fn thrd_yield() = { gate::pass(Op::new(Kind::YIELD)); };
}
