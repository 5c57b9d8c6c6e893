//! Faults of the environment, where the user asks for them; see `vsrun_model::inject`.

use vsrun_model::inject::{toss, MOST};

use crate::gate;
use crate::local::{local, me, world, Phase};

/// True if `fault` strikes here: a toss decides, so that both are explored. Never where it was not asked for, and no
/// more often in a thread than [`MOST`] times.
pub fn strikes(fault: u32) -> bool {
    if world().inject & fault == 0 || local().phase != Phase::Running || local().borrowed || me().faults >= MOST {
        return false;
    }
    if me().spared {
        return false;
    }
    let struck = gate::pass(toss(fault)) == 1;
    me().faults += u8::from(struck);
    struck
}

/// Does something about which it has been decided that it does not fail: no fault strikes inside.
pub fn sparing<T>(what: impl FnOnce() -> T) -> T {
    let before = core::mem::replace(&mut me().spared, true);
    let result = what();
    me().spared = before;
    result
}
