//! What a piece of a search has come to.

use super::{BugKind, Summary};

/// What a piece has come to so far.
pub struct Worked {
    /// Its name.
    pub name: String,
    /// Executions, those that were cut off included.
    pub executions: u64,
    /// Of these so many were cut off, since all that was enabled slept.
    pub sleep_blocked: u64,
    /// Transitions.
    pub transitions: u64,
    /// Nothing is left of it.
    pub over: bool,
    /// Objects turned out to be shared that were not when the search was split: it is to be split again.
    pub outdated: bool,
    /// What was found now, with what ended it.
    pub summary: Option<Summary>,
    /// Bugs that it has shown so far.
    pub bugs: usize,
}

impl Worked {
    /// 0: nothing is left of it, and no bug; 1: a bug; 2 and 4 as always; 3: something is left.
    pub fn exit_code(&self) -> i32 {
        let failed = self.summary.iter().flat_map(|s| &s.bugs).find(|bug| !bug.kind.is_of_program());
        match failed {
            Some(bug) if matches!(bug.kind, BugKind::Unconfirmed | BugKind::Fault) => 4,
            Some(_) => 2,
            None if self.bugs > 0 => 1,
            None if self.over => 0,
            None => 3,
        }
    }
}
