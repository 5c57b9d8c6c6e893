//! pthread_cond_*, pthread_barrier_*.

use vsrun_model::{Kind, Op};

use crate::calls::cond::{barrier_init, barrier_wait, destroy, wait, wake};
use crate::calls::sync;
use crate::calls::time::timed;
use crate::gate;
use crate::sys::ret_pthread;

symbols! {
    fn pthread_cond_init(c: u64, attr: u64) -> i32 = { sync::cond_init(c, attr); 0 };
    fn pthread_cond_destroy(c: u64) -> i32 = destroy(c);
    fn pthread_cond_wait(c: u64, m: u64) -> i32 = wait(c, m, Ok);
    fn pthread_cond_timedwait(c: u64, m: u64, abstime: u64) -> i32 = {
        let clock = if sync::cond_is_monotonic(c) { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
        wait(c, m, |op| timed(op, clock, abstime))
    };
    fn pthread_cond_clockwait(c: u64, m: u64, clock: i32, abstime: u64) -> i32 =
        wait(c, m, |op| timed(op, clock, abstime));
    fn pthread_cond_signal(c: u64) -> i32 = wake(Kind::COND_SIGNAL, c);
    fn pthread_cond_broadcast(c: u64) -> i32 = wake(Kind::COND_BROADCAST, c);
    fn pthread_barrier_init(b: u64, _attr: u64, count: u32) -> i32 = barrier_init(b, count);
    fn pthread_barrier_destroy(b: u64) -> i32 =
        ret_pthread(gate::pass(Op::on(Kind::BARRIER_DESTROY, sync::barrier(b))));
    fn pthread_barrier_wait(b: u64) -> i32 = barrier_wait(b);
}
