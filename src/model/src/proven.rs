//! What a program does for which the reductions by partial order (`dpor`, `optimal`) are not proven to lose nothing: random
//! programs with some of it have shown a trace that was missed. A search that meets it is not complete.

use crate::op::{self, Kind, Op};
use crate::world::{World, GAVE_UP_FLOCK, SEVERAL_OWNERS};

/// What reductions are not proven for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unproven {
    /// flock gave up one kind of lock to wait for the other.
    FlockGaveUp,
    /// F_GETLK found locks of several processes, in the order of their list.
    SeveralOwners,
    /// A futex with priority inheritance.
    PiFutex,
    /// A message was sent while mq_notify waited for one.
    Notified,
}

/// What an operation is by itself, whether it was performed or only pending.
pub fn unproven(op: &Op) -> Option<Unproven> {
    match op.kind {
        Kind::FUTEX_LOCK_PI => Some(Unproven::PiFutex),
        Kind::MQ_SEND if op.has(op::VARIANT) => Some(Unproven::Notified),
        _ => None,
    }
}

/// What came of operations in a world.
pub fn unproven_here(world: &World) -> impl Iterator<Item = Unproven> {
    let beyond = world.beyond;
    let all = [(GAVE_UP_FLOCK, Unproven::FlockGaveUp), (SEVERAL_OWNERS, Unproven::SeveralOwners)];
    all.into_iter().filter(move |(bit, _)| beyond & bit != 0).map(|(_, what)| what)
}
