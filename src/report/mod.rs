//! What vsrun found, as data, and how it is said: [`text`] for people, [`json`] for programs, [`show`] for scenarios.
//! [`views`], [`waits`] and [`identity`] make the data from the model.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod channels;
mod files;
pub mod identity;
pub mod json;
mod locks;
pub mod mismatch;
mod paint;
pub mod show;
mod sockets;
pub mod steps;
pub mod text;
pub mod views;
pub mod waits;

#[cfg(test)]
pub(crate) mod testing;

pub use paint::colours_for;

/// [`Summary::search`] of a replay.
pub const REPLAY: &str = "replay";

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No bug was seen.
    Ok,
    /// The first bug was of this kind.
    Found(BugKind),
}

impl Verdict {
    /// The verdict on an exploration that found `bugs`, in the order of finding: the first that is not an error counts.
    pub fn of(bugs: &[Bug]) -> Verdict {
        let real = bugs.iter().find(|bug| bug.kind != BugKind::Error);
        real.or(bugs.first()).map_or(Verdict::Ok, |bug| Verdict::Found(bug.kind))
    }

    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Found(kind) => kind.name(),
        }
    }
}

/// Why an exploration is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incomplete {
    /// The time was spent.
    Time,
    /// vsrun was asked to end: what is left of the time was taken.
    Interrupted,
    /// The number of executions was reached.
    Executions,
    /// Executions were cut at the depth bound.
    Depth,
    /// Schedules beyond a bound were left out.
    Bound,
    /// The search picks schedules at random.
    Random,
}

/// The end of the notes of searches whose reduction is not proven for what the program does: they are not complete then.
pub const NOT_PROVEN: &str = ": the reduction is not proven for that; --search naive explores all";

/// The end of the notes of executions in which signals should have come that did not: they are not all there is.
pub const NEVER_CAME: &str = " was asked for and is not modelled: it never came";

impl Incomplete {
    /// The word of the contract.
    pub fn name(self) -> &'static str {
        match self {
            Incomplete::Time | Incomplete::Interrupted => "time",
            Incomplete::Executions => "executions",
            Incomplete::Depth => "depth",
            Incomplete::Bound => "bound",
            Incomplete::Random => "random",
        }
    }
}

/// How the first process of the program ended, in an execution that was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramStatus {
    /// It exited with this status.
    Exit(i32),
    /// A signal of this number ended it.
    Signal(i32),
}

impl ProgramStatus {
    /// From what `wait` gives for a process that is over.
    pub fn from_wait(status: i32) -> ProgramStatus {
        match status & 0x7f {
            0 => ProgramStatus::Exit(status >> 8 & 0xff),
            signal => ProgramStatus::Signal(signal),
        }
    }
}

/// One bug.
#[derive(Clone, Debug)]
pub struct Bug {
    /// Its kind.
    pub kind: BugKind,
    /// One line about it.
    pub summary: String,
    /// The scenario that replays it, if one could be written.
    pub scenario: Option<PathBuf>,
    /// The execution that showed it, counted from 1.
    pub execution: u64,
    /// Transitions up to it.
    pub transitions: u64,
    /// What was seen, for the text report.
    pub details: Details,
}

/// What was seen when a bug showed itself.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The threads, in order of creation.
    pub threads: Vec<ThreadView>,
    /// The circle of waiting, if that is the bug: each link's thread waits for the next link's, the last for the first.
    pub cycle: Option<Vec<CycleLink>>,
    /// The fatal signal of a crash.
    pub signal: Option<SignalView>,
    /// The transitions.
    pub steps: Vec<StepView>,
}

/// A link of a circle of waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleLink {
    /// Who waits.
    pub thread: String,
    /// For what; the next link's thread holds it. `None`: for the end of that thread.
    pub object: Option<String>,
}

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadStatus {
    /// It has the turn.
    Running,
    /// At a visible operation that could go on.
    Ready,
    /// At a visible operation that would block.
    Waiting,
    /// In a system call that went to the kernel.
    InCall,
    /// Over.
    Exited,
}

/// A thread at the time of a bug.
#[derive(Clone, Debug)]
pub struct ThreadView {
    /// Its name: path of creation.
    pub thread: String,
    /// Its process, as the program knows it.
    pub vpid: i32,
    /// The program that this process runs; empty if unknown.
    pub program: String,
    /// The routine it was started with; empty if unknown.
    pub start: String,
    /// What it is doing.
    pub status: ThreadStatus,
    /// Where it is, innermost first: function+offset (module).
    pub frames: Vec<String>,
    /// The operation it is at.
    pub pending: Option<String>,
    /// Locks it holds.
    pub holds: Vec<String>,
    /// What must happen before it can go on.
    pub waits_for: Vec<String>,
}

/// A fatal signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalView {
    /// Its name.
    pub name: String,
    /// What the kernel says about the cause (`SEGV_MAPERR`).
    pub code: Option<String>,
    /// The address of the fault.
    pub address: Option<u64>,
    /// The thread.
    pub thread: String,
    /// Registers by name.
    pub registers: Vec<(String, u64)>,
}

/// One transition for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepView {
    /// Its number, from 1.
    pub n: u64,
    /// Who moved.
    pub thread: String,
    /// The operation: `pthread_mutex_lock(lock_a)`.
    pub op: String,
    /// More to say: `alternative 2 of 3`.
    pub note: Option<String>,
    /// What the operation returned, if known.
    pub result: Option<String>,
}

impl StepView {
    /// The operation with result and note.
    pub fn full(&self) -> String {
        let result = self.result.as_ref().map_or_else(String::new, |r| format!(" = {r}"));
        let note = self.note.as_ref().map_or_else(String::new, |n| format!("  ({n})"));
        format!("{}{result}{note}", self.op)
    }
}

/// The whole exploration.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// The outcome.
    pub verdict: Verdict,
    /// The bugs, in order of finding.
    pub bugs: Vec<Bug>,
    /// Everything was explored.
    pub complete: bool,
    /// Why not; `None` also if the first bug ended the exploration.
    pub incomplete_reason: Option<Incomplete>,
    /// Name of the search, or [`REPLAY`].
    pub search: String,
    /// Executions, those that were cut off included.
    pub executions: u64,
    /// Transitions, re-executed prefixes not counted again.
    pub transitions: u64,
    /// Executions cut off because everything enabled was asleep.
    pub sleep_blocked: u64,
    /// Mazurkiewicz traces, where they were counted.
    pub traces: Option<u64>,
    /// A hash of the transitions of a single execution: the same for the same execution.
    pub trace: Option<u64>,
    /// Transitions of the longest execution.
    pub max_depth: u64,
    /// Workers.
    pub workers: u32,
    /// Wall-clock time, seconds.
    pub seconds: f64,
    /// How the program ended, where an execution was shown.
    pub program_status: Option<ProgramStatus>,
    /// Lines for the reader: what could not be done, what was assumed.
    pub notes: Vec<String>,
    /// System calls that went to the kernel and could block or communicate, with how often.
    pub passed_calls: Vec<(String, u64)>,
    /// Further root processes: their arguments, the name first.
    pub with: Vec<Vec<OsString>>,
}

impl Summary {
    /// What is said of a run that did not take place, or came to nothing.
    pub fn failed(program: &[OsString], message: &str) -> Summary {
        let bug = Bug {
            kind: BugKind::Error,
            summary: message.to_string(),
            scenario: None,
            execution: 0,
            transitions: 0,
            details: Details::default(),
        };
        Summary {
            program: program.to_vec(),
            verdict: Verdict::Found(BugKind::Error),
            bugs: vec![bug],
            complete: false,
            incomplete_reason: None,
            search: String::new(),
            executions: 0,
            transitions: 0,
            sleep_blocked: 0,
            traces: None,
            trace: None,
            max_depth: 0,
            workers: 0,
            seconds: 0.0,
            program_status: None,
            notes: Vec::new(),
            passed_calls: Vec::new(),
            with: Vec::new(),
        }
    }

    /// The exit code of the contract.
    pub fn exit_code(&self) -> i32 {
        match self.verdict {
            Verdict::Found(BugKind::Error) => 2,
            Verdict::Found(_) => 1,
            Verdict::Ok if self.complete => 0,
            Verdict::Ok => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{bug, summary};
    use super::*;

    #[test]
    fn verdict_and_exit_code() {
        let mut all = summary();
        assert_eq!((all.verdict.name(), all.exit_code()), ("ok", 0));
        all.complete = false;
        assert_eq!(all.exit_code(), 3);
        let bugs = [bug(BugKind::Error), bug(BugKind::Crash), bug(BugKind::Deadlock)];
        assert_eq!(Verdict::of(&bugs), Verdict::Found(BugKind::Crash));
        assert_eq!(Verdict::of(&bugs[..1]), Verdict::Found(BugKind::Error));
        assert_eq!(Verdict::of(&[]), Verdict::Ok);
        all.verdict = Verdict::of(&bugs);
        assert_eq!(all.exit_code(), 1);
        all.verdict = Verdict::of(&bugs[..1]);
        assert_eq!(all.exit_code(), 2);
    }

    #[test]
    fn wait_status() {
        assert_eq!(ProgramStatus::from_wait(3 << 8), ProgramStatus::Exit(3));
        assert_eq!(ProgramStatus::from_wait(0x80 | 11), ProgramStatus::Signal(11));
    }
}
