//! Where a scenario could still have gone another way.

use super::ending::BugKind;

/// What random continuations from one state came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shows {
    /// The bug.
    pub bug: u64,
    /// Another bug.
    pub other: u64,
    /// An end without one.
    pub none: u64,
    /// No end: they were cut.
    pub cut: u64,
}

impl Shows {
    /// How many there were.
    pub fn all(&self) -> u64 {
        self.bug + self.other + self.none + self.cut
    }

    /// Those that ended without the bug.
    pub fn away(&self) -> u64 {
        self.other + self.none
    }
}

/// An operation of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The thread's name.
    pub thread: String,
    /// The operation as a call.
    pub text: String,
    /// Both with the names for people.
    pub people: (String, String),
    /// The source line that makes it, if that is known.
    pub at: Option<String>,
    /// The step of the scenario, from 1, at which it is made; `None`: at none.
    pub step: Option<u64>,
}

/// A step at which another choice leads away from the bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What the scenario does there.
    pub taken: Move,
    /// What could be done instead. The same thread: its operation comes out another way.
    pub instead: Move,
    /// What comes after the one, and after the other.
    pub shows: [Shows; 2],
}

/// What was found out about a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The bug: its kind and the line about it.
    pub bug: (BugKind, String),
    /// That line with the names for people.
    pub line: String,
    /// Of a race the two uses, which are both enabled where the scenario ends: either order is the same race.
    pub uses: Option<[Move; 2]>,
    /// Its steps.
    pub steps: u64,
    /// The latest step at which another choice leads away each time; or, where none was found, now and then.
    pub turn: Option<Turn>,
    /// A later one at which it does now and then.
    pub later: Option<Turn>,
    /// What random executions from the beginning come to. Where one choice leads away nobody asks: `None`.
    pub beginning: Option<Shows>,
    /// Steps, from the first, that were not looked at for want of time.
    pub left: u64,
    /// Executions that were run.
    pub executions: u64,
}
