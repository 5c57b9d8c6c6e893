//! What several searches of the same program came to, one after the other.

use std::ffi::OsString;
use std::time::Duration;

use super::ending::Verdict;
use super::summary::{Bug, Summary};

/// One search.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What it is called: `random`, `pct`, `preemptions=2`, `optimal`.
    pub name: String,
    /// How long it was to take.
    pub budget: Duration,
    /// Bugs that no search before it had found.
    pub news: usize,
    /// What it came to.
    pub summary: Summary,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Hunt {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// The searches, in order.
    pub phases: Vec<Phase>,
    /// Searches for which there was no time, or no use.
    pub not_run: Vec<String>,
    /// Each bug once, in the order of finding, with its shortest scenario.
    pub bugs: Vec<Bug>,
    /// The program cannot be run as it is, or somebody interfered, or vsrun was at fault, in the last search.
    pub obstacles: Vec<Bug>,
    /// What was set up for the program, and what should be known.
    pub notes: Vec<String>,
}

impl Hunt {
    /// The outcome: of the bugs, then of what went wrong.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.bugs.iter().chain(&self.obstacles).map(|bug| bug.kind))
    }

    /// One search without any bound went through everything, with the memory of the program watched. That others did not is no matter: they
    /// only look at parts of it.
    pub fn is_complete(&self) -> bool {
        let whole = |phase: &Phase| phase.name == "optimal" && phase.summary.is_complete() && phase.summary.watched;
        self.obstacles.is_empty() && self.phases.iter().any(whole)
    }

    /// No execution of any search reached its end.
    pub fn reached_no_end(&self) -> bool {
        self.phases.iter().all(|phase| phase.summary.ended == 0)
    }

    /// The exit code of the contract.
    pub fn exit_code(&self) -> i32 {
        let summary = Summary { verdict: self.verdict(), ..Summary::default() };
        match summary.exit_code() {
            0 if !self.is_complete() => 3,
            code => code,
        }
    }
}
