//! Kinds of bugs, and the outcome of an exploration in one word.

use serde::{Deserialize, Serialize};

/// Kinds of bugs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BugKind {
    /// Nothing can move and something is not finished, or locks are waited for in a circle.
    Deadlock,
    /// A failed assertion, abort, misuse of an object, or an exit status that the caller does not want.
    Assert,
    /// A fatal signal.
    Crash,
    /// A violation of the locking discipline.
    Race,
    /// A thread that runs without ever reaching a visible operation.
    Divergence,
    /// A process that could do nothing for too many states in a row.
    Livelock,
    /// The program does something that vsrun does not support.
    Error,
}

impl BugKind {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            BugKind::Deadlock => "deadlock",
            BugKind::Assert => "assert",
            BugKind::Crash => "crash",
            BugKind::Race => "race",
            BugKind::Divergence => "divergence",
            BugKind::Livelock => "livelock",
            BugKind::Error => "error",
        }
    }
}

/// The outcome in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verdict {
    /// No bug was seen.
    #[default]
    Ok,
    /// The first bug was of this kind.
    Found(BugKind),
}

impl Verdict {
    /// The verdict on an exploration that found bugs of these kinds, in the order of finding: the first that is not an
    /// error counts.
    pub fn of(kinds: impl Iterator<Item = BugKind> + Clone) -> Verdict {
        let real = kinds.clone().find(|&kind| kind != BugKind::Error);
        real.or(kinds.clone().next()).map_or(Verdict::Ok, Verdict::Found)
    }

    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Found(kind) => kind.name(),
        }
    }
}
