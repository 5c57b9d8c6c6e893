//! pthread_mutex_*, pthread_spin_*.

use vsrun_model::{op, Kind, Op};

use crate::calls::mutex::{destroy, lock, spin_init, unlock};
use crate::calls::sync;
use crate::calls::time::timed;
use crate::gate::{self, local, model};
use crate::sys::ret_pthread;

symbols! {
    fn pthread_mutex_init(m: u64, attr: u64) -> i32 = { sync::mutex_init(m, attr); 0 };
    fn pthread_mutex_destroy(m: u64) -> i32 = destroy(m);
    fn pthread_mutex_lock(m: u64) -> i32 = lock(m, Ok);
    fn pthread_mutex_trylock(m: u64) -> i32 = lock(m, |op| Ok(op.with(op::TRY)));
    fn pthread_mutex_timedlock(m: u64, abstime: u64) -> i32 = lock(m, |op| timed(op, libc::CLOCK_REALTIME, abstime));
    fn pthread_mutex_clocklock(m: u64, clock: i32, abstime: u64) -> i32 = lock(m, |op| timed(op, clock, abstime));
    fn pthread_mutex_unlock(m: u64) -> i32 = unlock(m);
    fn pthread_mutex_consistent(m: u64) -> i32 =
        ret_pthread(model().mutex_consistent(local().cur, sync::mutex(m)));
    fn pthread_mutex_consistent_np(m: u64) -> i32 = pthread_mutex_consistent(m);
    fn __pthread_mutex_lock(m: u64) -> i32 = lock(m, Ok);
    fn __pthread_mutex_trylock(m: u64) -> i32 = pthread_mutex_trylock(m);
    fn __pthread_mutex_unlock(m: u64) -> i32 = unlock(m);
    fn pthread_spin_init(s: u64, _pshared: i32) -> i32 = spin_init(s);
    fn pthread_spin_destroy(_s: u64) -> i32 = 0;
    fn pthread_spin_lock(s: u64) -> i32 = ret_pthread(gate::pass(Op::on(Kind::SPIN_LOCK, sync::spin(s))));
    fn pthread_spin_trylock(s: u64) -> i32 =
        ret_pthread(gate::pass(Op::on(Kind::SPIN_LOCK, sync::spin(s)).with(op::TRY)));
    fn pthread_spin_unlock(s: u64) -> i32 = ret_pthread(gate::pass(Op::on(Kind::SPIN_UNLOCK, sync::spin(s))));
}
