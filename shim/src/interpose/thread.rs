//! pthread_create, join, detach, cancel, once.

use vsrun_model::op;

use crate::calls::libc_functions;
use crate::calls::thread::{cancel, create, detach, join_with, once, set_cancel_state, thrd_join as join};
use crate::calls::time::timed;

symbols! {
    fn pthread_create(thread: u64, attr: u64, start: u64, arg: u64) -> i32 = create(thread, attr, start, arg);
    fn pthread_join(pthread: u64, value: u64) -> i32 = join_with(pthread, value, Ok);
    fn pthread_tryjoin_np(pthread: u64, value: u64) -> i32 = join_with(pthread, value, |op| Ok(op.with(op::TRY)));
    fn pthread_timedjoin_np(pthread: u64, value: u64, abstime: u64) -> i32 =
        pthread_clockjoin_np(pthread, value, libc::CLOCK_REALTIME, abstime);
    fn pthread_clockjoin_np(pthread: u64, value: u64, clock: i32, abstime: u64) -> i32 =
        join_with(pthread, value, |op| if abstime == 0 { Ok(op) } else { timed(op, clock, abstime) });
    fn thrd_join(thread: u64, value: u64) -> i32 = join(thread, value);
    fn pthread_detach(pthread: u64) -> i32 = detach(pthread, libc_functions::get().pthread_detach);
    fn thrd_detach(thread: u64) -> i32 = detach(thread, libc_functions::get().thrd_detach);
    fn pthread_cancel(pthread: u64) -> i32 = cancel(pthread);
    fn pthread_setcancelstate(state: i32, old: u64) -> i32 = set_cancel_state(state, old);
    fn pthread_once(control: u64, routine: u64) -> i32 = once(control, routine, libc_functions::get().pthread_once);
    fn call_once(control: u64, routine: u64) = { once(control, routine, libc_functions::get().call_once); };
}
