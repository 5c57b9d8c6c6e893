//! Executions that are still to be started: what an execution did not choose, kept as prefixes of what it did. Each can
//! be started at any time and by any worker.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vsrun_model::arena::{Choice, Policy, Seen};
use vsrun_model::{Kind, Uid};

use crate::codec::{is_part, DecodeError};
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Alternatives of one operation that are to be tried in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Branch {
    /// Choices of the execution that went another way. See [`ByLeaf`].
    #[serde(skip)]
    pub leaf: Arc<[Choice]>,
    /// How many of them lead to the state.
    pub at: u32,
    /// Who moves there.
    pub uid: Uid,
    /// Its operation.
    pub kind: Kind,
    /// First alternative that has not been tried.
    pub value: u32,
    /// One past the last.
    pub end: u32,
    /// An alternative among these that was taken already.
    pub skip: Option<u32>,
    /// Part of the search tree that lies below each alternative, by Knuth's estimate (1975): the whole tree is 1, and
    /// the alternatives of a state have equal parts of what lies below the state.
    pub weight: f64,
}

/// One execution that is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    /// The choices to be made.
    pub prefix: Vec<Choice>,
    /// Part of the search tree that begins there.
    pub weight: f64,
}

impl Item {
    /// The first execution: anything.
    pub fn root() -> Item {
        Item { prefix: Vec::new(), weight: 1.0 }
    }

    /// The schedule that starts it and records what it does.
    pub fn schedule(&self, ticket: u64) -> Schedule {
        Schedule { ticket, prefix: self.prefix.clone(), policy: Policy::STAY, record: true, ..Schedule::default() }
    }

    /// Transitions of a finished execution that no other has counted: those behind the branching point.
    pub fn transitions(&self, trace: &Trace) -> u64 {
        (trace.steps.len() as u64 + trace.unrecorded).saturating_sub(self.prefix.len().saturating_sub(1) as u64)
    }
}

impl Branch {
    /// The alternatives of `seen` in the state after `at` choices of `leaf`, where (`uid`, `value`) was taken.
    pub fn new(leaf: &Arc<[Choice]>, at: usize, seen: &Seen, (uid, value): (Uid, u32), weight: f64) -> Branch {
        let skip = (seen.act.uid == uid).then_some(value);
        Branch {
            leaf: Arc::clone(leaf),
            at: at as u32,
            uid: seen.act.uid,
            kind: seen.act.op.kind,
            value: u32::from(skip == Some(0)),
            end: seen.choices,
            skip,
            weight,
        }
    }

    /// True if nothing is left to try.
    pub fn is_empty(&self) -> bool {
        self.value >= self.end
    }

    /// Whether one that has been read can be: something is left to try, its state is one of its leaf's, and what is left out is an
    /// alternative that is not next.
    fn is_whole(&self) -> bool {
        let skips = self.skip.is_none_or(|skip| skip < self.end && skip != self.value);
        !self.is_empty() && skips && self.at as usize <= self.leaf.len() && is_part(self.weight).is_ok()
    }

    /// How many alternatives are left.
    pub fn len(&self) -> u64 {
        let left = u64::from(self.end.saturating_sub(self.value));
        left - u64::from(self.skip.is_some_and(|s| s >= self.value && s < self.end))
    }

    /// Takes the next alternative out. Must not be empty.
    pub fn take(&mut self) -> Item {
        let mut prefix = self.leaf[..self.at as usize].to_vec();
        prefix.push(Choice::new(self.uid, self.value, self.kind));
        self.value += 1;
        if self.skip == Some(self.value) {
            self.value += 1;
        }
        Item { prefix, weight: self.weight }
    }
}

/// Branches as they are saved, each leaf once: those of one execution stand side by side.
pub(super) type ByLeaf = Vec<(Arc<[Choice]>, Vec<Branch>)>;

/// What [`with_leaves`] makes these branches of.
pub(super) fn by_leaf(branches: &[Branch]) -> Vec<(&[Choice], &[Branch])> {
    branches.chunk_by(|a, b| Arc::ptr_eq(&a.leaf, &b.leaf)).map(|same| (&*same[0].leaf, same)).collect()
}

/// Whether items that have been read can be.
///
/// # Errors
/// One cannot.
pub(super) fn items<'a>(all: impl IntoIterator<Item = &'a Item>) -> Result<(), DecodeError> {
    all.into_iter().try_for_each(|item| is_part(item.weight))
}

/// The branches in their order.
///
/// # Errors
/// One of them cannot be.
pub(super) fn with_leaves(saved: ByLeaf) -> Result<Vec<Branch>, DecodeError> {
    let mut all = Vec::new();
    for (leaf, branches) in saved {
        all.extend(branches.into_iter().map(|branch| Branch { leaf: Arc::clone(&leaf), ..branch }));
    }
    all.iter().all(Branch::is_whole).then_some(all).ok_or(DecodeError::Wrong("branch"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    fn branch(taken: Option<u32>, choices: u32) -> Branch {
        let leaf: Arc<[Choice]> = vec![Choice::new(Uid::MAIN, 0, Kind::YIELD); 3].into();
        let mut seen = Seen { choices, ..Seen::default() };
        seen.act.uid = Uid(7);
        let taken = taken.map_or((Uid::MAIN, 0), |value| (Uid(7), value));
        Branch::new(&leaf, 2, &seen, taken, 0.5)
    }

    fn values(mut branch: Branch) -> Vec<u32> {
        let mut values = Vec::new();
        while !branch.is_empty() {
            let left = branch.len();
            let item = branch.take();
            assert_eq!((item.prefix.len(), branch.len()), (3, left - 1));
            values.push(item.prefix[2].value);
        }
        assert_eq!(branch.len(), 0);
        values
    }

    #[test]
    fn each_alternative_but_the_taken_one_comes_once() {
        assert_eq!(values(branch(None, 3)), [0, 1, 2]);
        assert_eq!(values(branch(Some(0), 3)), [1, 2]);
        assert_eq!(values(branch(Some(1), 3)), [0, 2]);
        assert_eq!(values(branch(Some(2), 3)), [0, 1]);
        assert!(values(branch(Some(0), 1)).is_empty());
        assert!(values(branch(None, 0)).is_empty());
    }

    #[test]
    fn branches_come_back() {
        let mut branches = vec![branch(None, 3), branch(Some(0), 3), branch(Some(1), 4)];
        branches[1].leaf = Arc::clone(&branches[0].leaf);
        branches[2].take();
        let bytes = codec::encode(&by_leaf(&branches));
        let read = |bytes: &[u8]| codec::decode(bytes).and_then(with_leaves);
        let again = read(&bytes).unwrap();
        assert_eq!(again, branches);
        assert!(Arc::ptr_eq(&again[0].leaf, &again[1].leaf) && !Arc::ptr_eq(&again[1].leaf, &again[2].leaf));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), Err(DecodeError::Short));
        }
        branches[1].end = branches[1].value;
        assert_eq!(read(&codec::encode(&by_leaf(&branches))), Err(DecodeError::Wrong("branch")));
        // What is left out is none of the alternatives, or the next one.
        for skip in [3, 0] {
            branches[1] = Branch { skip: Some(skip), ..branch(None, 3) };
            assert_eq!(read(&codec::encode(&by_leaf(&branches))), Err(DecodeError::Wrong("branch")));
        }
        branches[1] = Branch { at: 4, ..branch(None, 3) };
        assert_eq!(read(&codec::encode(&by_leaf(&branches))), Err(DecodeError::Wrong("branch")));
    }
}
