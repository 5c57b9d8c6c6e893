//! How an execution ended, as the supervisor saw it; the kind of bug that this is, and the outcome of an exploration in one word.

use serde::{Deserialize, Serialize};
use vsrun_model::Tid;

/// How an execution came to its end, as far as the supervisor saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The model says how.
    Modelled,
    /// A fatal signal (number) in the process with that index.
    Crash {
        /// Signal number.
        signal: i32,
        /// Index of the process.
        process: u32,
    },
    /// CPU time without a visible operation.
    Divergence,
    /// The world sits in a system call that went to the kernel: number and arguments.
    Sits {
        /// Thread index.
        thread: Tid,
        /// 1 + the number, 0 if it is in none, and the arguments.
        call: [u64; 7],
    },
    /// A process ended without the model knowing, with this exit status.
    Died(i32),
    /// vsrun was asked to end.
    Interrupted,
}

/// A fatal signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalView {
    /// Its name.
    pub name: String,
    /// What the kernel says about the cause (`SEGV_MAPERR`).
    pub code: Option<String>,
    /// The address of the fault.
    pub address: Option<u64>,
    /// The thread.
    pub thread: Tid,
    /// Registers by name; none of a signal that was sent.
    pub registers: Vec<(String, u64)>,
}

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
