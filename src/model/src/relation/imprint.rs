//! A quick test for independence, for those that compare every operation of an execution with all before it.

use crate::base::ids::NONE;
use crate::base::op::{Kind, REACHES};
use crate::objects::fd::{by_mask, is_fd};
use crate::relation::depend::{operands, reaches_everything};
use crate::state::act::{Act, Effects, IN_ONCE};
use crate::state::signal::SHARED_PENDING;

/// Bit of operations that name no object.
const NAMELESS: u64 = 1 << 63;

/// Bits such that transitions of different threads without a common one are independent in any state, as
/// [`crate::dependent_after`] says. Never 0; all bits for what may depend on anything.
pub fn imprint(a: &Act, did: Effects) -> u64 {
    let wide = Effects::EXITS.with(Effects::LAST).with(Effects::SIGNALS).with(Effects::FAR);
    let meets_others = by_mask(&a.op)
        || is_fd(a.op.kind) && a.op.has(REACHES)
        || matches!(a.op.kind, Kind::JOIN | Kind::WAIT | Kind::NAME | Kind::ONCE)
        || a.fate & IN_ONCE != 0
        || a.op.signals & SHARED_PENDING != 0;
    let circles = crate::objects::lock::moves_or_waits(&a.op) != [false; 2];
    if circles || did.has(wide) || meets_others || reaches_everything(a) {
        return u64::MAX;
    }
    let bit = |o: u32| if o == NONE { 0 } else { 1 << (o % 63) };
    let [first, second] = operands(&a.op);
    match bit(first) | bit(second) {
        0 => NAMELESS,
        bits => bits,
    }
}
