//! What is asked of an operation that may have to come earlier, see `relation::before`; and what each family needs to answer.

use crate::base::ObjId;
use crate::state::{Act, Effects, WOKEN};

/// Whether it is enabled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is.
    Yes,
    /// It would block.
    No,
    /// The recorded states do not tell.
    Unknown,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Answer {
        if yes {
            Answer::Yes
        } else {
            Answer::No
        }
    }
}

/// A transition between the state asked about and the one in which `p` was seen.
#[derive(Clone, Copy, Debug)]
pub struct Did<'a> {
    /// Its operation, as it was performed.
    pub act: &'a Act,
    /// What it did beyond that.
    pub did: Effects,
    /// It happens before `p`.
    pub before: bool,
    /// The recorded state of `p` before and after it, if `p` was pending in both.
    pub found: Option<(i64, i64)>,
    /// It gave `p` its wake-up.
    pub woke: bool,
    /// The process of its thread was over when `p` was seen.
    pub over: bool,
}

/// The operation asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// As it was performed, or as it stands blocked at the end.
    pub act: &'a Act,
    /// It was performed.
    pub performed: bool,
    /// When it became pending.
    pub first: &'a Act,
    /// In the state before the first dropped transition, with its number of alternatives, if it was pending then.
    pub seen: Option<(&'a Act, u32)>,
    /// The transitions that stay, in order.
    pub kept: &'a [Did<'a>],
    /// Those that are taken away, in order; the first is the one that `p` races with.
    pub dropped: &'a [Did<'a>],
    /// Another process may be waiting for a record lock.
    pub lock_waits: bool,
    /// Timeouts may fire at any moment, so that giving up is no more than what a `try` does.
    pub any_moment: bool,
}

impl Question<'_> {
    /// The first dropped operation on object `o`.
    pub(crate) fn first_on(&self, o: ObjId) -> Option<&Act> {
        self.dropped.iter().map(|d| d.act).find(|a| a.op.names(o))
    }

    /// It has its wake-up, or still gets it from one of the kept transitions.
    pub(crate) fn woken(&self) -> bool {
        let had = self.first.fate | self.seen.map_or(0, |s| s.0.fate);
        had & WOKEN != 0 || self.act.fate & WOKEN != 0 && !self.dropped.iter().any(|d| d.woke)
    }

    /// Operations on a lock all depend on each other: it stands as the first dropped one found it. Others that change it
    /// (the end of a thread that owns it) show in what `p` found.
    pub(crate) fn lock_is_free(&self, lock: ObjId) -> Answer {
        let state = self.lock_state(lock);
        let mine = self.act.tid as i64 + 1;
        // A mutex that the thread owns lets it through or not, by its type.
        Answer::from(state == 0 || state == mine && self.act.state == mine && self.performed)
    }

    /// 1 + its owner, 0 for none.
    pub(crate) fn lock_state(&self, lock: ObjId) -> i64 {
        let before = |d: &Did| match d.found {
            _ if d.act.op.names(lock) => Some(d.act.state),
            Some((before, after)) if before != after => Some(before),
            _ => None,
        };
        self.dropped.iter().find_map(before).unwrap_or(self.act.state)
    }
}
