//! pthread_rwlock_*.

use vsrun_model::{op, Kind, Op};

use crate::calls::sync;
use crate::calls::time::timed;
use crate::gate;
use crate::sys::ret_pthread;

fn pass(kind: Kind, l: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    let id = sync::rwlock(l);
    ret_pthread(match shape(Op::on(kind, id)) {
        Ok(op) => gate::pass_mirrored(op, Some((l, id))),
        Err(error) => error,
    })
}

symbols! {
    fn pthread_rwlock_init(l: u64, attr: u64) -> i32 = { sync::rwlock_init(l, attr); 0 };
}

#[no_mangle]
extern "C" fn pthread_rwlock_destroy(l: u64) -> i32 {
    let result = gate::pass(Op::on(Kind::RW_DESTROY, sync::rwlock(l)));
    sync::rwlock_gone(l);
    ret_pthread(result)
}

symbols! {
    fn pthread_rwlock_rdlock(l: u64) -> i32 = pass(Kind::RW_RDLOCK, l, Ok);
    fn pthread_rwlock_tryrdlock(l: u64) -> i32 = pass(Kind::RW_RDLOCK, l, |op| Ok(op.with(op::TRY)));
    fn pthread_rwlock_timedrdlock(l: u64, abstime: u64) -> i32 =
        pass(Kind::RW_RDLOCK, l, |op| timed(op, libc::CLOCK_REALTIME, abstime));
    fn pthread_rwlock_clockrdlock(l: u64, clock: i32, abstime: u64) -> i32 =
        pass(Kind::RW_RDLOCK, l, |op| timed(op, clock, abstime));
    fn pthread_rwlock_wrlock(l: u64) -> i32 = pass(Kind::RW_WRLOCK, l, Ok);
    fn pthread_rwlock_trywrlock(l: u64) -> i32 = pass(Kind::RW_WRLOCK, l, |op| Ok(op.with(op::TRY)));
    fn pthread_rwlock_timedwrlock(l: u64, abstime: u64) -> i32 =
        pass(Kind::RW_WRLOCK, l, |op| timed(op, libc::CLOCK_REALTIME, abstime));
    fn pthread_rwlock_clockwrlock(l: u64, clock: i32, abstime: u64) -> i32 =
        pass(Kind::RW_WRLOCK, l, |op| timed(op, clock, abstime));
    fn pthread_rwlock_unlock(l: u64) -> i32 = pass(Kind::RW_UNLOCK, l, Ok);
}
