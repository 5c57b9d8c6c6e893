//! Functions of the program that return a choice: what was put in their place.

use std::ops::Range;

use crate::scenario::Toss;

/// A function that returns a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tossed {
    /// What was asked for.
    pub toss: Toss,
    /// Where it is, as reports name places.
    pub place: String,
    /// The compiler has split a function of that name: a part of it may be in its callers.
    pub is_split: bool,
    /// What was written over code: the jump at its entry, and one that this may lead to.
    pub(super) patches: Vec<Patch>,
}

impl Tossed {
    /// What is said of it.
    pub fn line(&self) -> String {
        let Tossed { toss, place, is_split, .. } = self;
        let most = toss.most;
        let split = match is_split {
            true => "; a compiler has split it: what it has put into its callers is as it was",
            false => "",
        };
        format!("--toss: {place} returns each of 0 to {most}{split}")
    }
}

impl Tossed {
    /// Its entry is a trap, not a jump.
    pub(super) fn traps(&self) -> bool {
        self.patches.iter().any(|patch| patch.bytes.len() == 1)
    }

    /// That trap is at `address`.
    pub(super) fn traps_at(&self, address: u64) -> bool {
        self.traps() && self.patches.iter().any(|patch| patch.at == address)
    }
}

/// Bytes written over code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    pub at: u64,
    pub bytes: Vec<u8>,
}

impl Patch {
    pub(super) fn range(&self) -> Range<u64> {
        self.at..self.at + self.bytes.len() as u64
    }
}

/// All bytes that were written over code.
pub(super) fn patched(tossed: &[Tossed]) -> Vec<Range<u64>> {
    tossed.iter().flat_map(|t| &t.patches).map(Patch::range).collect()
}
