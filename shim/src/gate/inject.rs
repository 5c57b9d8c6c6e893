//! Faults of the environment, where the user asks for them; see `vsrun_model::inject`.

use vsrun_model::inject::{toss, toss_of_reuse, EINTR, MOST};

use super::turn::pass;
use super::{arena, fiber, local, model, world, Phase};

/// True if `fault` strikes here: a toss decides, so that both are explored. Never where it was not asked for, and no
/// more often in a thread than [`MOST`] times.
pub fn strikes(fault: u32) -> bool {
    if world().inject & fault == 0 || local().phase != Phase::Running || local().borrowed || fiber().faults >= MOST {
        return false;
    }
    if fiber().spared {
        return false;
    }
    let struck = pass(toss(fault)) == 1;
    fiber().faults += u8::from(struck);
    struck
}

/// Decides whether the call that begins is interrupted if it has to wait; see [`super::eintr`].
pub fn interrupts() -> bool {
    let struck = strikes(EINTR);
    fiber().interrupted = struck;
    struck
}

/// Does something about which it has been decided that it does not fail: no fault strikes inside.
pub fn sparing<T>(what: impl FnOnce() -> T) -> T {
    let before = core::mem::replace(&mut fiber().spared, true);
    let result = what();
    fiber().spared = before;
    result
}

/// There is going to be a second thread in the world: decides whether blocks of the heap that are freed from now on are given out again at once, where it is known
/// that this can be told. Nobody else is there that what libc holds here could keep from going on.
pub fn begins_with_others() {
    if !world().concurrent {
        decides_reuse();
    }
}

/// The program's main is about to begin: the same, where a constructor has made a thread.
pub fn main_begins() {
    if world().concurrent {
        decides_reuse();
    }
}

fn decides_reuse() {
    let decides = arena().plan.reuses && local().phase == Phase::Running && !local().borrowed;
    if decides && pass(toss_of_reuse()) == 1 {
        model().reuses_freed();
    }
}
