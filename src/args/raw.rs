//! The command line as clap reads it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::values::{bound, command_words, fault, seconds, signal_number, Words};
use crate::config::{FilesName, Format, ProgressMode, Replay, Show, Timeouts};
use crate::search::Bound;

/// What `--search` is when it is not given.
const DEFAULT_SEARCH: SearchName = SearchName::Optimal;

const ABOUT: &str = "\
Systematic concurrency checker for unmodified native programs.

Runs PROGRAM, a closed system of processes and threads, in one interleaving after the other and reports
deadlocks, assertion failures, crashes, divergences and livelocks. Each bug is written as a scenario that
replays it exactly.";

const EXAMPLES: &str = "\
Examples:
  vsrun ./robot_controller              explore until the first bug; it is written as a scenario
  vsrun --keep-going --time 60 ./prog   collect different bugs for a minute
  vsrun --once ./prog arg               one execution, as it would run by itself
  vsrun replay prog-deadlock-1.vsrun.json
  gdb -ex 'handle SIGSYS nostop noprint pass' -ex run --args vsrun replay --no-supervisor prog-deadlock-1.vsrun.json
  vsrun doctor                          can this machine run vsrun, and if not, what to do

Exit status: 0 explored completely and no bug; 1 bug; 2 usage, environment or unsupported program;
3 no bug within the bounds; 4 the replay diverged, or a bug of vsrun.";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum SearchName {
    Optimal,
    Dpor,
    Naive,
    // `naive`, with the traces counted.
    #[value(hide = true)]
    Traces,
    Random,
    Walk,
    Pct,
    Sss,
    IfSss,
    #[value(hide = true)]
    Composed,
    #[value(hide = true)]
    Transactions,
    Exitblock,
    ExitblockRw,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum CheckpointName {
    Auto,
    Fork,
    #[value(hide = true)]
    Replay,
    #[value(hide = true)]
    Rollback,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum RaceName {
    Off,
    #[value(hide = true)]
    Lockset,
    #[value(hide = true)]
    Hb,
    #[value(hide = true)]
    Both,
}

#[derive(Debug, Parser)]
#[command(name = "vsrun", bin_name = "vsrun", version, about = ABOUT, long_about = None, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, override_usage = USAGE)]
pub(super) struct Raw {
    #[command(subcommand)]
    pub(super) command: Option<RawCommand>,
    #[command(flatten)]
    pub(super) explore: RawExplore,
}

const USAGE: &str = "\
vsrun [OPTIONS] PROGRAM [ARGS]...
       vsrun replay [--no-supervisor] [--output FILE] [--format text|json] FILE
       vsrun show [--format text|json] FILE
       vsrun doctor";

#[derive(Debug, Subcommand)]
pub(super) enum RawCommand {
    /// Run a scenario again, step by step the same
    Replay(Replay),
    /// Print what a scenario file holds, with all its steps
    Show(Show),
    /// Check whether this machine can run vsrun
    Doctor,
}

#[derive(Debug, Args)]
pub(super) struct RawExplore {
    /// The program (found in PATH unless it has a slash) and its arguments
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, num_args = 1..)]
    pub(super) program: Vec<OsString>,

    /// How to explore; random, walk (which draws threads by what they have left) and pct go on for ever
    #[arg(long, value_enum, default_value_t = DEFAULT_SEARCH, help_heading = "Search")]
    pub(super) search: SearchName,
    /// One execution with the default policy
    #[arg(long, conflicts_with_all = ["search", "keep_going", "max_executions"], help_heading = "Search")]
    pub(super) once: bool,
    /// Explore on after the first bug
    #[arg(long, help_heading = "Search")]
    pub(super) keep_going: bool,
    /// Only what K switches away from threads that could go on bring about (preemptions=K, reduced), or all schedules
    /// within K delays (delays=K); those of cost 0 first, then 1, ..
    #[arg(long, value_name = "KIND=K", value_parser = bound, conflicts_with_all = ["search", "once"], help_heading = "Search")]
    pub(super) bound: Option<Bound>,
    /// Depth of the bugs that --search pct looks for
    #[arg(long, value_name = "D", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Search")]
    pub(super) pct_depth: u32,
    /// Cut every execution after N transitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Search")]
    pub(super) max_depth: Option<u64>,
    /// Stop after N executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Search")]
    pub(super) max_executions: Option<u64>,
    /// Stop after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Search")]
    pub(super) time: Option<Duration>,
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    pub(super) seed: u64,
    /// Workers, a CPU each [default: all CPUs allowed]
    #[arg(short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Search")]
    pub(super) workers: Option<u32>,
    /// Make operations on objects that only one thread uses transitions too (naive always does)
    #[arg(long, help_heading = "Objects")]
    pub(super) all_objects: bool,
    /// Say that only one thread uses the synchronization objects in variable SYMBOL; checked, for naive too
    #[arg(long, value_name = "SYMBOL", help_heading = "Objects")]
    pub(super) unshared: Vec<String>,
    /// Never switch threads at operations on the objects in variable SYMBOL: their order does not matter, and while one
    /// is held there is no other place to switch; the latter is checked
    #[arg(long, value_name = "SYMBOL", help_heading = "Objects")]
    pub(super) atomic: Vec<String>,
    /// File with lines 'unshared SYMBOL' and 'atomic SYMBOL'
    #[arg(long, value_name = "FILE", help_heading = "Objects")]
    pub(super) annotations: Option<PathBuf>,
    /// How to get back to a branching point
    #[arg(long, value_enum, default_value_t = CheckpointName::Auto, help_heading = "Search")]
    pub(super) checkpoint: CheckpointName,

    /// When timeouts of the program fire: urgent (when nothing else can run), any (always)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Timeouts::Urgent, help_heading = "What counts as a bug")]
    pub(super) timeouts: Timeouts,
    /// CPU seconds without a visible operation that are a divergence
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds, help_heading = "What counts as a bug")]
    pub(super) divergence_timeout: Duration,
    /// States in a row in which a process can do nothing that are a livelock [default: off]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "What counts as a bug")]
    pub(super) livelock: Option<u32>,
    /// Detect accesses without a lock
    #[arg(long, value_enum, default_value_t = RaceName::Off, help_heading = "What counts as a bug")]
    pub(super) race: RaceName,
    /// A process that exits with a status other than 0 is a bug
    #[arg(long, help_heading = "What counts as a bug")]
    pub(super) fail_on_exit: bool,
    /// Misuse such as unlocking a free mutex does what glibc does instead of being a bug
    #[arg(long, help_heading = "What counts as a bug")]
    pub(super) allow_misuse: bool,

    /// Save the state of the search to FILE every 5 seconds and at the end
    #[arg(long, value_name = "FILE", conflicts_with = "once", help_heading = "Search")]
    pub(super) save: Option<PathBuf>,
    /// Go on from a state that was saved, and save to it again
    #[arg(long, value_name = "FILE", conflicts_with = "once", help_heading = "Search")]
    pub(super) resume: Option<PathBuf>,
    /// Directory for scenarios
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "Output")]
    pub(super) scenario_dir: PathBuf,
    /// File for the program's own output (default: stderr)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Form of the report: text, or json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text, help_heading = "Output")]
    pub(super) format: Format,
    /// A line about progress on stderr: auto (not with json), always, never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = ProgressMode::Auto, help_heading = "Output")]
    pub(super) progress: ProgressMode,

    /// Faults of the environment that may strike, separated by commas: short-io, eintr, eagain, enomem, spurious
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = fault, help_heading = "Search")]
    pub(super) inject: Vec<u32>,
    /// What the program writes to files: private (a layer that each execution starts without; the files themselves stay
    /// as they are), real (the files are changed) [default: private, with --once real]
    #[arg(long, value_enum, value_name = "WHERE", hide_possible_values = true, help_heading = "Objects")]
    pub(super) files: Option<FilesName>,
    /// One more process of the system, a client for instance: program and arguments, with quotes as for a shell
    #[arg(long, value_name = "CMD", value_parser = command_words, help_heading = "Objects")]
    pub(super) with: Vec<Words>,
    /// Signal (name or number) for processes that only wait for peers when all others are done: explores their end
    #[arg(long, value_name = "SIG", value_parser = signal_number, help_heading = "Objects")]
    pub(super) stop_signal: Option<i32>,
    #[arg(long, hide = true)]
    pub(super) watch: Vec<OsString>,
    #[arg(long, hide = true)]
    pub(super) toss: Vec<OsString>,
}
