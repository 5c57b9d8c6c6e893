//! What a program, or an annotation file, says of who may use memory: VS_own, VS_disown, VS_hand_over. No place to switch: that all comes in
//! an order is checked by the tool (`src/race/owners.rs`).

use vsrun_model::object::NONE;
use vsrun_model::watch::Record;

use super::thread::thread_of;
use crate::gate::{shield, watched};
use crate::watch::Claimed;

/// The running thread has this memory for itself.
pub fn own(at: u64, size: u64) {
    watched::claims(Record::OWNS, at, size, NONE, None);
}

/// It gives it up.
pub fn disown(at: u64, size: u64) {
    watched::claims(Record::DISOWNS, at, size, NONE, None);
}

/// It gives it to the thread that libc knows as `to`; 0, or one that is over: to whoever uses it next.
pub fn hand_over(at: u64, size: u64, to: u64) {
    watched::claims(Record::HANDS_OVER, at, size, thread_of(to), None);
}

/// One of these is said where the program's code itself calls nothing (`own FUNCTION ..` in an annotation file).
pub fn at_place(claimed: Claimed) {
    let entered = shield::enter();
    let Claimed { what, at, size, to, site } = claimed;
    let to = if what == Record::HANDS_OVER { thread_of(to) } else { NONE };
    watched::claims(what, at, size, to, Some(site));
    shield::leave(entered);
}
