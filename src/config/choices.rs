//! Options that have one of some values, and bounds.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::duration;
use crate::race::Flaws;

/// When timeouts fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Timeouts {
    /// Whenever they could.
    Any,
    /// When nothing else can run.
    Urgent,
}

/// Where what the program writes to files goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FilesName {
    /// To a layer of each execution's own.
    Private,
    /// To the files.
    Real,
}

/// The processor that the program sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CpuName {
    /// One of x86-64-v2.
    Baseline,
    /// The machine's.
    Native,
}

/// How executions come to where they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Checkpoint {
    /// By rollback, after the first executions of a worker, which are forks; by copies where processes cannot go back.
    Auto,
    /// Each is a fork of the program as it stands before its main.
    Fork,
    /// Each starts the program.
    Replay,
    /// A process puts back what it has written since its first choice; a fork where it cannot.
    Rollback,
    /// Each is a copy of the processes as they stood at the first choice, or within the execution before, which stand still there.
    Copies,
}

/// What `--states` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum StatesAsked {
    /// Each state is explored once.
    Once,
    /// The same, and it is told what makes states differ.
    Why,
}

/// How accesses without a lock are detected.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Race {
    /// What threads do to memory is not looked at.
    Off,
    /// It is watched; where accesses conflict and nothing orders them, each of them is explored.
    Explore,
    /// The same, and such accesses are bugs.
    Hb,
    /// The same, and memory that several threads use without a lock that all of them hold is a bug.
    Lockset,
    /// Both are bugs.
    Both,
}

impl Race {
    /// Memory is watched.
    pub fn watches(self) -> bool {
        self != Race::Off
    }

    /// What of uses of memory is a bug.
    pub fn flaws(self) -> Flaws {
        Flaws {
            unordered: matches!(self, Race::Hb | Race::Both),
            undisciplined: matches!(self, Race::Lockset | Race::Both),
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Race::Off => "off",
            Race::Explore => "explore",
            Race::Hb => "hb",
            Race::Lockset => "lockset",
            Race::Both => "both",
        }
    }
}

/// Whether freed blocks of the heap are kept back.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Heap {
    On,
    Off,
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
#[derive(Clone, Copy, PartialEq, Debug, Default, Args)]
pub struct Bounds {
    /// Cut an execution that has made no progress for N transitions [default: 100000; searches that draw lots 1000000; with --max-depth or --once none]
    #[arg(long = "max-idle", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "When to stop")]
    pub idle: Option<u64>,
    /// Cut every execution after N transitions [default: four times what --max-idle is by default; with --once none]
    #[arg(long = "max-depth", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "When to stop")]
    pub depth: Option<u64>,
    /// Stop after N executions
    #[arg(long = "max-executions", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "When to stop")]
    pub executions: Option<u64>,
    /// Stop after TIME, also within an execution: seconds, or 10m, 1h30m, 500ms
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "When to stop")]
    pub time: Option<Duration>,
}
