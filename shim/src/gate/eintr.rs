//! Calls that are interrupted by a signal that nobody sent (`--inject eintr`). Whether one is has been decided before (`inject::interrupts`); here
//! is what becomes of its operation.

use vsrun_model::kind::Polls;
use vsrun_model::op::TRY;
use vsrun_model::Op;

use super::fiber;
use crate::sys::errno::{EAGAIN, EINTR, ENOMSG};

/// Makes of `op`, the operation of a call, what is performed. One that is to be interrupted does not wait: what it would wait for is not
/// there, and that is when a signal interrupts it. (True: [`outcome`] is to be asked.) Operations that no signal interrupts, or that do
/// not wait, are none of these.
#[inline]
pub fn once_blocked(op: &mut Op) -> bool {
    fiber().interrupted && interrupts(op)
}

#[cold]
fn interrupts(op: &mut Op) -> bool {
    fiber().interrupted = false;
    let interrupted = op.kind.row().signals.fail(op, false) && !op.tries();
    if interrupted {
        *op = op.with(TRY);
    }
    interrupted
}

/// What a call gives whose operation did not wait because it is to be interrupted.
pub fn outcome(op: &Op, result: i64) -> i64 {
    let no_event = result == 0 && op.kind.row().polls == Polls::Events;
    if no_event || matches!(result, EAGAIN | ENOMSG) {
        EINTR
    } else {
        result
    }
}
