//! What vsrun is asked to do, resolved: what the command line has become.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::search::Bound;

/// What vsrun is asked to do. There is one of these in a run, so that its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Explore a program.
    Explore(Config),
    /// Run a scenario again.
    Replay(Replay),
    /// Print a scenario.
    Show(Show),
    /// Check the machine.
    Doctor,
}

/// How the interleavings are explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchKind {
    /// Dynamic partial-order reduction with wakeup trees: every trace once.
    Optimal,
    /// Every enabled transition in every state.
    Naive,
    /// Every enabled transition in every state, and traces counted.
    Traces,
    /// Dynamic partial-order reduction with sleep sets.
    Dpor,
    /// Persistent sets and sleep sets.
    Sss,
    /// The same with invisible transitions first.
    IfSss,
    /// Switches only at releases of locks.
    ExitBlock,
    /// The same, with what reads and writes different objects put to sleep.
    ExitBlockRw,
    /// Random executions, without an end of their own.
    Random,
    /// Random executions in which threads are drawn by what they have left.
    Walk,
    /// One execution with the default policy (`--once`).
    Once,
    /// Random priorities with a few changes (`--search pct`).
    Pct,
    /// What schedules within a bound do (`--bound`).
    Bounded(Bound),
}

impl SearchKind {
    /// The name in reports and scenarios.
    pub fn name(self) -> &'static str {
        match self {
            SearchKind::Optimal => "optimal",
            SearchKind::Naive => "naive",
            SearchKind::Traces => "traces",
            SearchKind::Dpor => "dpor",
            SearchKind::Sss => "sss",
            SearchKind::IfSss => "if-sss",
            SearchKind::ExitBlock => "exitblock",
            SearchKind::ExitBlockRw => "exitblock-rw",
            SearchKind::Random => "random",
            SearchKind::Walk => "walk",
            SearchKind::Pct => "pct",
            SearchKind::Once => "once",
            SearchKind::Bounded(Bound::Preemptions(_)) => "preemptions",
            SearchKind::Bounded(Bound::Delays(_)) => "delays",
        }
    }

    /// Whether it leaves orders out by what depends on what, which is not proven for all that programs do.
    pub fn reduces(self) -> bool {
        matches!(self, SearchKind::Dpor | SearchKind::Optimal)
    }
}

/// When timeouts fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Timeouts {
    /// When nothing else can run.
    Urgent,
    /// Whenever they could.
    Any,
}

/// Where what the program writes to files goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FilesName {
    /// To a layer of each execution's own.
    Private,
    /// To the files.
    Real,
}

/// How to get back to a branching point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checkpoint {
    /// What costs least.
    Auto,
    /// Fork the checkpoint.
    Fork,
}

/// The form of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object on stdout.
    Json,
}

/// Whether a line about progress is written to standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProgressMode {
    /// Unless the report is JSON or there is one execution only.
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

/// Where an exploration stops.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Bounds {
    /// Transitions of one execution.
    pub depth: Option<u64>,
    /// Executions.
    pub executions: Option<u64>,
    /// Wall-clock time.
    pub time: Option<Duration>,
}

/// An exploration, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The program and its arguments, as given. Never empty.
    pub program: Vec<OsString>,
    /// The algorithm.
    pub search: SearchKind,
    /// Depth of the bugs that `pct` looks for.
    pub pct_depth: u32,
    /// Where it stops.
    pub bounds: Bounds,
    /// Explore on after the first bug.
    pub keep_going: bool,
    /// Seed of random choices.
    pub seed: u64,
    /// When timeouts fire.
    pub timeouts: Timeouts,
    /// Faults that may strike, bits of [`vsrun_model::inject`].
    pub inject: u32,
    /// How to get back to a branching point.
    pub checkpoint: Checkpoint,
    /// CPU time without a visible operation that is a divergence.
    pub divergence_timeout: Duration,
    /// States in a row in which a process has nothing enabled that are a livelock.
    pub livelock: Option<u32>,
    /// A process that exits with a status other than 0 is a bug.
    pub fail_on_exit: bool,
    /// Where what the program writes goes, if that was said.
    pub files: Option<FilesName>,
    /// Further root processes: program and arguments each. None is empty.
    pub with: Vec<Vec<OsString>>,
    /// Signal for what is left over when its peers are gone; 0: none.
    pub stop_signal: i32,
    /// Misuse of objects does what glibc does instead of being a bug.
    pub allow_misuse: bool,
    /// Workers; as many as there are CPUs, if it lasts, when `None`.
    pub workers: Option<u32>,
    /// Whether progress is told.
    pub progress: ProgressMode,
    /// Where the state of the search is saved, so that it can be resumed.
    pub save: Option<PathBuf>,
    /// The state to go on from; it is saved there again unless `save` names another file.
    pub resume: Option<PathBuf>,
    /// Every operation is a transition, also one on an object that one thread alone uses.
    pub all_objects: bool,
    /// Variables that one thread alone uses.
    pub unshared: Vec<String>,
    /// Variables whose operations are no place to switch.
    pub atomic: Vec<String>,
    /// File with more of both.
    pub annotations: Option<PathBuf>,
    /// Where scenarios are written.
    pub scenario_dir: PathBuf,
    /// Where the program's own output goes; stderr if `None`.
    pub output: Option<PathBuf>,
    /// The form of the report.
    pub format: Format,
}

impl Config {
    /// Each execution starts from the same files. One execution alone (`--once`) is the program's own run: it writes as
    /// it would by itself.
    pub fn private_files(&self) -> bool {
        match self.files {
            Some(files) => files == FilesName::Private,
            None => self.search != SearchKind::Once,
        }
    }
}

/// Runs a scenario again.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Replay {
    /// Run it without a tracer, so that gdb or valgrind can be one
    #[arg(long)]
    pub no_supervisor: bool,
    /// File for the program's own output (default: stderr)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Form of the report: text, or json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Show {
    /// Form of the output: text, or json (the file itself)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
