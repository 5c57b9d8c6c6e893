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
    /// Somebody outside of the program sent it a signal that ends or stops a process of it, or has a handler there.
    Outside(Intrusion),
    /// Its processes use more memory together than they may.
    Memory {
        /// Bytes that they use.
        used: u64,
        /// Bytes that they may use.
        bound: u64,
    },
    /// The program overwrote vsrun's memory, and with it what is known of the execution.
    Overwritten,
    /// vsrun was asked to end.
    Interrupted,
}

impl Ending {
    /// It says nothing of the program.
    pub fn is_environments(&self) -> bool {
        matches!(self, Ending::Outside(_) | Ending::Memory { .. })
    }
}

/// A signal from outside of the closed system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intrusion {
    /// Signal number.
    pub signal: i32,
    /// Index of the process that got it; `None`: the one from which executions are forked, or one that the model does not
    /// know yet.
    pub process: Option<u32>,
    /// The kernel's id of the process that sent it; 0: unknown.
    pub sender: i32,
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
    /// No bug of the program: somebody outside of it interfered.
    Environment,
    /// No bug that can be relied on: what one execution came to, the same schedule did not come to again.
    Unconfirmed,
    /// No bug of the program: vsrun was at fault.
    Fault,
    /// No bug: an execution that was cut off before its end.
    Cut,
    /// No bug: an execution that ran to its end (`--save-outcome`).
    Outcome,
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
            BugKind::Environment => "environment",
            BugKind::Unconfirmed => "unconfirmed",
            BugKind::Fault => "fault",
            BugKind::Cut => "cut",
            BugKind::Outcome => "outcome",
        }
    }

    /// True if it is the program that is wrong; otherwise the exploration went wrong.
    pub fn is_of_program(self) -> bool {
        use BugKind::{Cut, Environment, Error, Fault, Outcome, Unconfirmed};
        !matches!(self, Error | Environment | Unconfirmed | Fault | Cut | Outcome)
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
    /// The verdict on an exploration that found bugs of these kinds, in the order of finding: the first of the program's
    /// counts, then what vsrun may be to blame for.
    pub fn of(kinds: impl Iterator<Item = BugKind> + Clone) -> Verdict {
        let first = |wanted: fn(BugKind) -> bool| kinds.clone().find(|&kind| wanted(kind));
        let found = first(BugKind::is_of_program)
            .or_else(|| first(|kind| matches!(kind, BugKind::Unconfirmed | BugKind::Fault)));
        found.or_else(|| first(|_| true)).map_or(Verdict::Ok, Verdict::Found)
    }

    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Found(kind) if kind.is_of_program() => kind.name(),
            Verdict::Found(_) => BugKind::Error.name(),
        }
    }
}
