//! What was found, as plain data: all that is printed is a function of it.

use std::time::Duration;

use crate::finding::PlaceView;

/// What is to be made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Threads cannot go on.
    Deadlock {
        /// Nobody could help, and who holds what is known for certain.
        certain: bool,
    },
    /// No thread is known to be unable to go on, but of some it is not known what they wait for, or who is to end that.
    Unknown,
    /// All threads move, or wait for what ends: the clock, or somebody outside.
    Ok,
}

impl Verdict {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Deadlock { .. } => "deadlock",
            Verdict::Unknown => "unknown",
            Verdict::Ok => "ok",
        }
    }

    /// The exit status.
    pub fn exit_code(self) -> i32 {
        match self {
            Verdict::Deadlock { .. } => 1,
            Verdict::Unknown => 3,
            Verdict::Ok => 0,
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitView {
    /// The call.
    pub call: String,
    /// What it waits for; where that is somebody's end: `the end of`.
    pub object: String,
    /// How those who can end it stand to it: `held by`; empty: it is their end, or nobody is named.
    pub via: String,
    /// Their names.
    pub who: Vec<String>,
    /// What else is known, and what is not.
    pub facts: Vec<String>,
    /// It has a time limit.
    pub limited: bool,
    /// Who or what else may end it: the clock, the network.
    pub outside: Option<String>,
    /// Why it is not known who could end it.
    pub unknown: Option<String>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadView {
    /// Its id.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its name and its id: `worker (4713)`.
    pub name: String,
    /// `waits`, `moves`, ..
    pub doing: &'static str,
    /// It cannot go on.
    pub stuck: bool,
    /// What it waits for.
    pub wait: Option<WaitView>,
    /// What others wait for and it has.
    pub holds: Vec<String>,
    /// Innermost first.
    pub frames: Vec<PlaceView>,
    /// The frames were found from registers; otherwise from what lies on the stack.
    pub exact: bool,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessView {
    /// Its id.
    pub pid: i32,
    /// What it is called.
    pub program: String,
}

/// A circle of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircleView {
    /// The threads, by position: each waits for the next, the last one for the first.
    pub threads: Vec<usize>,
    /// Nobody could help, and who holds what is known for certain.
    pub certain: bool,
    /// Threads that may go on and could break it.
    pub helpers: Vec<String>,
}

/// How it was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Between two looks at a thread.
    pub between: Duration,
    /// The stops of threads, one after the other: how many, the longest, all together.
    pub stops: (usize, Duration, Duration),
    /// Threads that wait and were not stopped, since the program would have noticed.
    pub spared: usize,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The process that was asked about.
    pub pid: i32,
    /// Its command line.
    pub program: Vec<String>,
    /// What is to be made of it.
    pub verdict: Verdict,
    /// A sentence.
    pub summary: String,
    /// Circles of threads that cannot go on.
    pub circles: Vec<CircleView>,
    /// Circles that somebody may still break.
    pub possible: Vec<CircleView>,
    /// The processes that were looked at.
    pub processes: Vec<ProcessView>,
    /// Their threads.
    pub threads: Vec<ThreadView>,
    /// What could not be found out.
    pub unknown: Vec<String>,
    /// How it was looked at.
    pub looked: Looked,
    /// The command that explores this program.
    pub explore: Option<String>,
}
