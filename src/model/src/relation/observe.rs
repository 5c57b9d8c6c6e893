//! What a step rests on of the steps before it: those without which it could have come out otherwise, or not at all. That is less than all that it
//! depends on. A read rests on the write that it reads from, and a write that does not read on none (*reads-from*: Mathur,
//! Pavlogiannis, Viswanathan, Optimal Prediction of Synchronization-Preserving Races, POPL 2021, Section 2).

use super::depend::dependent_by_effects;
use crate::base::{Kind, ObjId};
use crate::objects::memory::ATOMIC;
use crate::state::{Act, Cell, Effects, Footprint, How, SEMVMX};

/// A use of a word of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The word.
    pub word: ObjId,
    /// Its bytes, a bit for each.
    pub bytes: u8,
    /// It is told what is in them.
    pub reads: bool,
    /// It changes them.
    pub writes: bool,
}

/// What an operation uses of memory, if it does nothing else that others could tell.
pub fn of_memory_alone(act: &Act) -> Option<Use> {
    if !matches!(act.op.kind, Kind::MEM_READ | Kind::MEM_WRITE) {
        return None;
    }
    let mut found = None;
    for &(cell, how) in Footprint::of(act, Effects::NONE).cells() {
        match (cell, how) {
            (Cell::Object(word), How::Bytes { bytes, writes }) if found.is_none() => {
                // An instruction that reads before it writes, and is not atomic, is two operations.
                found = Some(Use { word, bytes, reads: !writes || act.op.has(ATOMIC), writes });
            }
            (Cell::World | Cell::Process(_), How::Reads) | (_, How::Moves { .. } | How::ChildMoves { .. }) => {}
            _ => return None,
        }
    }
    found
}

/// What an operation does to the number of a semaphore, if it does nothing else that others could tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// Adds one to what it has found.
    Adds(i64),
    /// Takes one from what it has found.
    Takes(i64),
}

/// See [`Count`], with the semaphore. `None` also where its number does not matter.
pub fn counts_alone(act: &Act) -> Option<(ObjId, Count)> {
    let mut found = None;
    for &(cell, how) in Footprint::of(act, Effects::NONE).cells() {
        match (cell, how) {
            (Cell::Object(id), How::Adds { value }) if found.is_none() => found = Some((id, Count::Adds(value))),
            (Cell::Object(id), How::Takes { value }) if found.is_none() && value > 0 => {
                found = Some((id, Count::Takes(value)));
            }
            (Cell::World | Cell::Process(_), How::Reads) | (_, How::Moves { .. } | How::ChildMoves { .. }) => {}
            _ => return None,
        }
    }
    found
}

/// Whether `later` rests on `earlier`, of another thread: it could have come out otherwise, or not at all, had `earlier` not been before it, and all
/// else been as it was. It may say so too often.
pub fn rests_on(earlier: &Act, its: Effects, later: &Act, did: Effects) -> bool {
    let (before, after) = (Footprint::of(earlier, its), Footprint::of(later, did));
    let met = |&(cell, how): &(Cell, How)| {
        let rests = |&(c, h): &(Cell, How)| c == cell && how.rests_on(cell, &h);
        before.cells().iter().any(rests)
    };
    after.cells().iter().any(met) || dependent_by_effects(earlier, its, later, did)
}

impl How {
    fn rests_on(&self, cell: Cell, earlier: &How) -> bool {
        match (*earlier, *self) {
            // What has been woken commutes with what wakes, but would not be awake.
            (How::Wakes { .. } | How::WakesAndMore, How::Woken { .. }) => true,
            _ if earlier.commutes(self, false) => false,
            (How::Bytes { writes, .. }, How::Bytes { .. }) => writes,
            // Who looks leaves nothing.
            (How::Looks | How::Names { looks: true, .. }, _) => !matches!(cell, Cell::Object(_)),
            (How::FileLock { tests, .. }, How::FileLock { .. }) => !tests,
            // There would be more.
            (How::Takes { .. }, How::Takes { .. } | How::Adds { .. }) => false,
            (How::Semop { amount: x, .. }, How::Semop { amount: y, value, .. }) => {
                !(x < 0 && (y < 0 || y > 0 && value + y < SEMVMX as i64 / 2))
            }
            _ => true,
        }
    }
}
