//! pthread_mutex_*, pthread_spin_*.

use vsrun_model::object::ObjKind;
use vsrun_model::{op, Kind, Op};

use super::timed;
use crate::{gate, local, sync};

/// Locks the mutex at `m`; `shape` adds flags or a deadline to the operation.
pub fn lock(m: u64, shape: impl FnOnce(Op) -> Result<Op, i32>) -> i32 {
    let id = sync::mutex(m);
    match shape(Op::on(Kind::MUTEX_LOCK, id)) {
        Ok(op) => gate::pass_mirrored(op, Some((m, id))) as i32,
        Err(error) => error,
    }
}

/// Unlocks the mutex at `m`.
pub fn unlock(m: u64) -> i32 {
    let id = sync::mutex(m);
    gate::pass_mirrored(Op::on(Kind::MUTEX_UNLOCK, id), Some((m, id))) as i32
}

/// Destroys the mutex at `m`.
pub fn destroy(m: u64) -> i32 {
    let result = gate::pass(Op::on(Kind::MUTEX_DESTROY, sync::mutex(m))) as i32;
    if result == 0 {
        sync::mutex_gone(m);
    }
    result
}

#[no_mangle]
extern "C" fn pthread_mutex_init(m: u64, attr: u64) -> i32 {
    sync::mutex_init(m, attr);
    0
}

#[no_mangle]
extern "C" fn pthread_mutex_destroy(m: u64) -> i32 {
    destroy(m)
}

#[no_mangle]
extern "C" fn pthread_mutex_lock(m: u64) -> i32 {
    lock(m, Ok)
}

#[no_mangle]
extern "C" fn pthread_mutex_trylock(m: u64) -> i32 {
    lock(m, |op| Ok(op.with(op::TRY)))
}

#[no_mangle]
extern "C" fn pthread_mutex_timedlock(m: u64, abstime: u64) -> i32 {
    lock(m, |op| timed(op, libc::CLOCK_REALTIME, abstime))
}

#[no_mangle]
extern "C" fn pthread_mutex_clocklock(m: u64, clock: i32, abstime: u64) -> i32 {
    lock(m, |op| timed(op, clock, abstime))
}

#[no_mangle]
extern "C" fn pthread_mutex_unlock(m: u64) -> i32 {
    unlock(m)
}

#[no_mangle]
extern "C" fn pthread_mutex_consistent(m: u64) -> i32 {
    let id = sync::mutex(m);
    local::world().mutex_consistent(local::local().cur, id) as i32
}

#[no_mangle]
extern "C" fn pthread_mutex_consistent_np(m: u64) -> i32 {
    pthread_mutex_consistent(m)
}

#[no_mangle]
extern "C" fn __pthread_mutex_lock(m: u64) -> i32 {
    lock(m, Ok)
}

#[no_mangle]
extern "C" fn __pthread_mutex_trylock(m: u64) -> i32 {
    pthread_mutex_trylock(m)
}

#[no_mangle]
extern "C" fn __pthread_mutex_unlock(m: u64) -> i32 {
    unlock(m)
}

#[no_mangle]
extern "C" fn pthread_spin_init(s: u64, _pshared: i32) -> i32 {
    crate::sys::store(s, 1i32);
    sync::create(ObjKind::SPIN, s, 0);
    0
}

#[no_mangle]
extern "C" fn pthread_spin_destroy(_s: u64) -> i32 {
    0
}

#[no_mangle]
extern "C" fn pthread_spin_lock(s: u64) -> i32 {
    gate::pass(Op::on(Kind::SPIN_LOCK, sync::spin(s))) as i32
}

#[no_mangle]
extern "C" fn pthread_spin_trylock(s: u64) -> i32 {
    gate::pass(Op::on(Kind::SPIN_LOCK, sync::spin(s)).with(op::TRY)) as i32
}

#[no_mangle]
extern "C" fn pthread_spin_unlock(s: u64) -> i32 {
    gate::pass(Op::on(Kind::SPIN_UNLOCK, sync::spin(s))) as i32
}
