//! Mutexes and spin locks.

use vsrun_model::{Kind, ObjKind, Op};

use super::sync;
use crate::gate;
use crate::sys::{ret_pthread, store};

/// Locks the mutex at `m`; `shape` adds flags or a deadline to the operation.
pub fn lock(m: u64, shape: impl FnOnce(Op) -> Result<Op, i64>) -> i32 {
    let id = sync::mutex(m);
    ret_pthread(match shape(Op::on(Kind::MUTEX_LOCK, id)) {
        Ok(op) => gate::pass_mirrored(op, Some((m, id))),
        Err(error) => error,
    })
}

/// Unlocks the mutex at `m`.
pub fn unlock(m: u64) -> i32 {
    let id = sync::mutex(m);
    ret_pthread(gate::pass_mirrored(Op::on(Kind::MUTEX_UNLOCK, id), Some((m, id))))
}

/// Destroys the mutex at `m`.
pub fn destroy(m: u64) -> i32 {
    let result = gate::pass(Op::on(Kind::MUTEX_DESTROY, sync::mutex(m)));
    if result == 0 {
        sync::mutex_gone(m);
    }
    ret_pthread(result)
}

/// pthread_spin_init.
pub fn spin_init(s: u64) -> i32 {
    store(s, 1i32);
    sync::create(ObjKind::SPIN, s, 0);
    0
}
