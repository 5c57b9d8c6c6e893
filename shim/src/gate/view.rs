//! What the running fiber alone sees of memory where stores go through buffers; see `late`.

use vsrun_model::carrier::Late;
use vsrun_model::object::SHARED;
use vsrun_model::{Pid, Tid};

use super::local::{arena, fiber, fiber_of, local, space_of, world, View};
use crate::sys::{load, store};

/// Stores go through buffers.
#[inline]
pub fn is_on() -> bool {
    arena().control.store_buffers != 0
}

/// The running fiber is at the gate: what it alone saw is over, and what it has stored is in its buffer.
#[inline]
pub fn settle() {
    if local().own_view.size != 0 {
        take_back();
    }
}

#[cold]
fn take_back() {
    let view = core::mem::replace(&mut local().own_view, View::NONE);
    if view.stores {
        let f = fiber();
        f.late[usize::from(f.n_late) - 1].value = value(view.address, view.size);
    }
    put(view.address, view.size, view.others);
}

/// Stores of the running fiber are in its buffer, or it alone sees something.
pub fn is_apart() -> bool {
    is_on() && (fiber().n_late > 0 || local().own_view.size > 0)
}

/// The threads of process `p` but the running one end where they stand. What is in their buffers comes out on the machine, and here nobody is
/// left to whom that is an operation. True: others may see that memory.
pub fn loses_stores(p: Pid) -> bool {
    let cur = local().cur;
    let is_seen = |late: &Late| p != local().pid || space_of(late.address & !7).0 & SHARED != 0;
    let loses = |&t: &Tid| {
        let f = fiber_of(t);
        t != cur && world().threads[t].pid == p && f.late[..usize::from(f.n_late)].iter().any(is_seen)
    };
    is_on() && world().live.as_slice().iter().any(loses)
}

/// The bytes there, at most eight.
pub fn value(address: u64, size: u32) -> u64 {
    (0..size).fold(0, |all, n| all | u64::from(load::<u8>(address + u64::from(n))) << (8 * n))
}

/// Puts these bytes there.
pub fn put(address: u64, size: u32, value: u64) {
    for n in 0..size {
        store(address + u64::from(n), (value >> (8 * n)) as u8);
    }
}
