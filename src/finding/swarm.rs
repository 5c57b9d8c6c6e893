//! What executions drawn by many searches by lot have come to.

use std::ffi::OsString;
use std::path::PathBuf;

use super::ending::{BugKind, Verdict};
use super::summary::Summary;
use crate::incomplete::Reasons;

/// What a task of a swarm has come to.
#[derive(Clone, Debug, Default)]
pub struct LotWorked {
    /// Its number.
    pub number: u64,
    /// What it drew by.
    pub search: String,
    /// From this seed.
    pub seed: u64,
    /// Executions.
    pub executions: u64,
    /// Transitions.
    pub transitions: u64,
    /// Pairs of operations that it has covered, and in both orders.
    pub pairs: (u64, u64),
    /// Bugs: kind, line, name of the scenario.
    pub bugs: Vec<(BugKind, String, Option<String>)>,
}

impl LotWorked {
    /// 1: a bug; 3: none, and there is always more to draw.
    pub fn exit_code(&self) -> i32 {
        if self.bugs.is_empty() {
            3
        } else {
            1
        }
    }
}

/// Tasks of one kind.
#[derive(Clone, Debug, Default)]
pub struct LotKind {
    /// `pct d=2`; of faults `eintr`.
    pub name: String,
    /// Tasks that were done.
    pub tasks: u64,
    /// Executions, those that reached an end of the program's, those that were cut.
    pub executions: u64,
    /// See there.
    pub ended: u64,
    /// See there.
    pub cut: u64,
    /// Transitions.
    pub transitions: u64,
    /// Seconds of all its tasks.
    pub seconds: f64,
    /// Orders of two operations that no task before had covered.
    pub news: u64,
    /// Bugs that no task before had found.
    pub bugs: u64,
}

/// A bug.
#[derive(Clone, Debug)]
pub struct SwarmBug {
    /// Its kind.
    pub kind: BugKind,
    /// One line about it.
    pub summary: String,
    /// What replays it.
    pub scenario: Option<PathBuf>,
    /// The task that it is shown of, what that drew by, its seed, and the faults that could strike beside those that were asked for.
    pub task: u64,
    /// See there.
    pub search: String,
    /// See there.
    pub seed: u64,
    /// See there.
    pub faults: Vec<&'static str>,
    /// The execution of that task, and transitions up to it.
    pub execution: u64,
    /// See there.
    pub transitions: u64,
    /// Tasks that have found it.
    pub tasks: u64,
}

/// The chance that a bug was missed.
#[derive(Clone, Copy, Debug)]
pub struct Missed {
    /// Of this depth.
    pub depth: u32,
    /// At most.
    pub chance: f64,
    /// Executions by which that is known.
    pub executions: u64,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Swarm {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Each bug once.
    pub bugs: Vec<SwarmBug>,
    /// By search, and by faults.
    pub searches: Vec<LotKind>,
    /// See there.
    pub faults: Vec<LotKind>,
    /// All tasks.
    pub all: LotKind,
    /// Tasks that were begun and not done.
    pub left: u64,
    /// Transitions of the longest execution.
    pub max_depth: u64,
    /// Pairs of operations of different threads that came one after the other on an object where their order matters, and those seen in both orders.
    pub pairs: u64,
    /// See there.
    pub both_ways: u64,
    /// How long it has gone on, seconds, and when an order of two was new last.
    pub seconds: f64,
    /// See there.
    pub newest: f64,
    /// Whether a bug was missed.
    pub missed: Vec<Missed>,
    /// Least and most threads and transitions of executions by which that is known.
    pub threads: (u32, u32),
    /// See there.
    pub lengths: (u32, u32),
    /// Why it is not complete.
    pub reasons: Reasons,
    /// What threads do to memory was watched in all tasks.
    pub watched: bool,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Swarm {
    /// The outcome.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.bugs.iter().map(|bug| bug.kind))
    }

    /// 1: a bug; 3: none. All is never explored.
    pub fn exit_code(&self) -> i32 {
        match (Summary { verdict: self.verdict(), ..Summary::default() }).exit_code() {
            0 => 3,
            code => code,
        }
    }
}
