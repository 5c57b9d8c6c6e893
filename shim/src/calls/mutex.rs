//! Mutexes and spin locks.

use vsrun_model::object::ObjKind;
use vsrun_model::{Kind, Op};

use super::sync;
use crate::gate;
use crate::sys::store;

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

/// pthread_spin_init.
pub fn spin_init(s: u64) -> i32 {
    store(s, 1i32);
    sync::create(ObjKind::SPIN, s, 0);
    0
}
