//! What vsrun is asked to do, resolved: what the command line has become.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::scenario::Toss;
use crate::search::{Bound, Pct};
use values::{
    bound, command_words, duration, duration_or_none, fault, memory, point, signal_number, size_or_none, size_or_zero,
    toss, uncontrolled,
};

mod choices;
mod forms;
mod installed;
mod pack;
mod paths;
mod pieces;
mod roots;
mod searches;
mod values;

pub use choices::{Bounds, Checkpoint, CpuName, FilesName, Heap, ProgressMode, Race, StatesAsked, Timeouts};
pub use forms::{Format, ReportFormat};
pub use installed::{Completions, Man, Shell};
pub use pack::{CheckPack, OciPack, PackOptions, Packed, RunPack};
pub(crate) use pack::{MakeOptions, RawPack};
pub(crate) use pieces::{ClusterOptions, RawPieces, SplitOptions};
pub use pieces::{DividePiece, Engine, MergePieces, PiecesOptions, WorkPiece};
use roots::ClientsParser;
pub use roots::{ClientsStart, Restart};
pub use searches::{SearchKind, SearchName};
pub use values::{Memory, MemoryModel, Point, Refine, Words};

/// What vsrun is asked to do. There is one of these in a run, so that its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Explore a program.
    Explore(Config),
    /// Run a scenario again.
    Replay(Replay),
    /// Say where a scenario could have gone another way.
    Explain(Explain),
    /// Open a scenario in a debugger, or stand at its steps for other programs.
    Debug(Debug),
    /// Stand at the steps of a scenario, in the terminal.
    Step(Step),
    /// Print a scenario.
    Show(Show),
    /// Draw a scenario.
    Timeline(Timeline),
    /// Run a program once and list what it does.
    Trace(Trace),
    /// Check the machine.
    Doctor(Doctor),
    /// Look at a process that hangs.
    Why(Why),
    /// Hunt for bugs of a daemon.
    Daemon(Daemon),
    /// Split a search, explore a piece, sum up.
    Pieces(Pieces),
    /// All of that, on an engine.
    Cluster(Cluster),
    /// Pack a program, look at a pack, run vsrun in one.
    Pack(Pack),
    /// Print completions.
    Completions(Completions),
    /// Write the man pages.
    Man(Man),
}

/// An exploration: its options are what `--help` says of them.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct Config {
    /// The program (found in PATH unless it has a slash) and its arguments
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, num_args = 1..)]
    pub program: Vec<OsString>,

    /// How to explore [default: optimal, and beside it schedules drawn by lot]; random, walk, pos, surw, rff and pct draw for ever
    #[arg(long = "search", id = "search", value_name = "SEARCH", value_enum, help_heading = "Search")]
    pub(crate) search_name: Option<SearchName>,
    /// Schedules are drawn by lot beside the search.
    #[arg(skip)]
    pub draws: bool,
    /// What this and the next options come to.
    #[arg(skip = SearchKind::Optimal)]
    pub search: SearchKind,
    /// One execution with the default policy
    #[arg(long, conflicts_with_all = ["search", "keep_going", "executions"], help_heading = "Search")]
    pub(crate) once: bool,
    /// Explore on after the first bug
    #[arg(long, help_heading = "Search")]
    pub keep_going: bool,
    /// Only what K switches away from threads that could go on bring about (preemptions=K, reduced), or all schedules
    /// within K delays (delays=K); those of cost 0 first, then 1, ..
    #[arg(long, value_name = "KIND=K", value_parser = bound, conflicts_with_all = ["search", "once"], help_heading = "Search")]
    pub(crate) bound: Option<Bound>,
    /// Depth of the bugs that --search pct looks for
    #[arg(long, value_name = "D", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Search")]
    pub pct_depth: u32,
    /// Transitions after which an execution of --search pct goes on as one of random: priorities alone may run one thread for ever
    #[arg(long, value_name = "N", default_value_t = Pct::FAIR, help_heading = "Search")]
    pub pct_fair: u64,
    /// What --search transactions does when what it has assumed of locks does not hold: it begins again (restart, the default), or goes
    /// on, and what has been explored is put right (incremental)
    #[arg(long, value_name = "HOW", help_heading = "Search")]
    pub refine: Option<Refine>,
    /// Where it stops.
    #[command(flatten)]
    pub bounds: Bounds,
    /// Write a scenario of an execution that was cut off, also where others reached their end; where none did, it is always written
    #[arg(long, help_heading = "When to stop")]
    pub save_cut: bool,
    /// Write a scenario of an execution with the K-th outcome of the table: executions that ran to their end and differ in what they printed or
    /// exited with
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "once", help_heading = "When to stop")]
    pub save_outcome: Vec<u32>,
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    pub seed: u64,
    /// Workers, a CPU each [default: all CPUs allowed]
    #[arg(short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Search")]
    pub workers: Option<u32>,
    /// Make operations on objects that only one thread uses transitions too (naive always does)
    #[arg(long, help_heading = "Hints on objects")]
    pub all_objects: bool,
    /// Say that only one thread uses the synchronization objects in variable SYMBOL; checked, for naive too
    #[arg(long, value_name = "SYMBOL", help_heading = "Hints on objects")]
    pub unshared: Vec<String>,
    /// Never switch threads at operations on the objects in variable SYMBOL: their order does not matter, and while one
    /// is held there is no other place to switch; the latter is checked
    #[arg(long, value_name = "SYMBOL", help_heading = "Hints on objects")]
    pub atomic: Vec<String>,
    /// File with lines 'unshared SYMBOL', 'atomic SYMBOL'; of memory: 'benign SYMBOL' and 'benign-in FUNCTION' (uses that are
    /// not reported), 'communication SYMBOL' (each use is a transition), 'own', 'disown' and 'hand-over' (who may use it:
    /// docs/PREDICATES.md)
    #[arg(long, value_name = "FILE", help_heading = "Hints on objects")]
    pub annotations: Option<PathBuf>,
    /// Memory that the processes of one execution may use together: bytes, or with K, M or G [default: three quarters of
    /// what is free, divided among the workers]; or tso or sc, see --memory-model
    #[arg(long, value_name = "SIZE|tso|sc", value_parser = memory, help_heading = "The system under test")]
    pub memory: Option<Memory>,
    /// What stores to memory that threads use without an order do: sc (they are visible at once), tso (they go through a buffer, as on
    /// x86; with --race explore)
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "MODEL",
        help_heading = "Memory that threads share"
    )]
    pub memory_model: Option<MemoryModel>,
    /// Make vsrun's memory read-only to the program in every execution, not only in some and where bugs are looked at: who
    /// writes there by mistake crashes there
    #[arg(long, help_heading = "Memory that threads share")]
    pub guard_arena: bool,
    /// How executions come to where they begin: rollback (in one process, which puts back what it has written since its first choice, or since it
    /// left the way of the next one), copies (of processes that stand still there), fork (each a copy of the program before its main), replay (each
    /// starts the program), auto (rollback, after 8, and copies where a process cannot go back)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Checkpoint::Auto, help_heading = "Search")]
    pub checkpoint: Checkpoint,
    /// Memory that the states within executions which the next ones go on from may take, of all workers together: bytes, or with K, M or G; 0: there
    /// are none, and executions begin at their first choice [default: a quarter of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size_or_zero, help_heading = "Search")]
    pub checkpoint_memory: Option<u64>,
    /// With --search naive: explore each state once, as --search stateful does. --states=why: and tell what makes states differ
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "once", hide_possible_values = true, help_heading = "Search")]
    pub states: Option<StatesAsked>,

    /// When timeouts of the program fire: any (whenever they could), urgent (when nothing else can run; not complete)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Timeouts::Any, help_heading = "The system under test")]
    pub timeouts: Timeouts,
    /// CPU time without a visible operation that is a divergence: seconds, or 500ms, 1m
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = duration, help_heading = "What counts as a bug")]
    pub divergence_timeout: Duration,
    /// States in a row in which a process can do nothing that are a livelock [default: off]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "What counts as a bug")]
    pub livelock: Option<u32>,
    /// Memory that threads use without an order: off (not looked at), explore (explored in each order), hb (that is a bug),
    /// lockset (memory without a lock that all who use it hold is a bug), both [default: explore, with --once off]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Memory that threads share")]
    pub(crate) race: Option<Race>,
    /// Where memory is watched: freed blocks of the heap that each process keeps back, so that who uses one is told: bytes, or with K,
    /// M or G; 0: none [default: 256K]
    #[arg(long, value_name = "SIZE", value_parser = size_or_none, conflicts_with = "heap", help_heading = "Memory that threads share")]
    pub(crate) quarantine: Option<u64>,
    /// Whether freed blocks are kept back: off is --quarantine 0
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, default_value_t = Heap::On, help_heading = "Memory that threads share")]
    pub(crate) heap: Heap,
    /// A process that exits with a status other than 0 is a bug
    #[arg(long, help_heading = "What counts as a bug")]
    pub fail_on_exit: bool,
    /// Misuse such as unlocking a free mutex does what glibc does instead of being a bug
    #[arg(long, help_heading = "What counts as a bug")]
    pub allow_misuse: bool,

    /// Save the state of the search to FILE every 5 seconds and at the end
    #[arg(long, value_name = "FILE", conflicts_with = "once", help_heading = "When to stop")]
    pub save: Option<PathBuf>,
    /// Go on from a state that was saved, and save to it again
    #[arg(long, value_name = "FILE", conflicts_with = "once", help_heading = "When to stop")]
    pub resume: Option<PathBuf>,
    /// What is done to shorten the schedule of each bug may take so long; 0: nothing is
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = duration_or_none, help_heading = "Output")]
    pub shrink: Duration,
    /// Directory for scenarios
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "Output")]
    pub scenario_dir: PathBuf,
    /// File for the program's own output (default: stderr)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Form of the report: text, json (one object on stdout), sarif (2.1.0, for code scanning), junit (XML, for test servers)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, help_heading = "Output")]
    pub format: ReportFormat,
    /// A line about progress on stderr: auto (not with json), always, never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = ProgressMode::Auto, help_heading = "Output")]
    pub progress: ProgressMode,

    /// Faults of the environment that may strike, separated by commas: short-io, eintr, eagain, enomem, spurious
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = fault, help_heading = "The system under test")]
    pub inject: Vec<u32>,
    /// What the program writes to files: private (a layer that each execution starts without; the files themselves stay
    /// as they are), real (the files are changed) [default: private, with --once real]
    #[arg(long, value_enum, value_name = "WHERE", hide_possible_values = true, help_heading = "The system under test")]
    pub files: Option<FilesName>,
    /// The processor that the program sees: baseline (x86-64-v2 on every machine: libc's functions, and cpuid where it can be trapped, so that
    /// scenarios and pieces run elsewhere), native (the machine's; they run on processors of its model only)
    #[arg(long, value_enum, value_name = "CPU", hide_possible_values = true, default_value_t = CpuName::Baseline, help_heading = "The system under test")]
    pub cpu: CpuName,
    /// One more process of the system, a client for instance: program and arguments, with quotes as for a shell
    #[arg(long, value_name = "CMD", value_parser = command_words, help_heading = "The system under test")]
    pub with: Vec<Words>,
    /// When the processes of --with begin: at-once, listening (once a socket listens), file:PATH (once that file exists), output:TEXT (once the
    /// program has printed that)
    #[arg(long, value_parser = ClientsParser, value_name = "WHEN", hide_possible_values = true, default_value = "at-once", help_heading = "The system under test")]
    pub clients: ClientsStart,
    /// Start the program again after its end: on-failure (a status other than 0, a signal other than HUP, INT, TERM and PIPE), always
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, help_heading = "The system under test")]
    pub restart: Option<Restart>,
    /// So often, at most. That the last start exits with a status other than 0 by itself is a bug
    #[arg(long, value_name = "N", default_value_t = 1, requires = "restart", value_parser = clap::value_parser!(u32).range(1..=16), help_heading = "The system under test")]
    pub restarts: u32,
    /// Signal (name or number) for processes that only wait for peers when all others are done: explores their end. That one
    /// of --with ends the program by it is no crash
    #[arg(long, value_name = "SIG", value_parser = signal_number, help_heading = "The system under test")]
    pub stop_signal: Option<i32>,
    /// Let calls that are not modelled go to the kernel, by kind, separated by commas: inotify, fanotify, io_uring, remap.
    /// Nothing is complete then, and replays are best effort
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = uncontrolled, help_heading = "The system under test")]
    pub uncontrolled: Vec<u32>,
    /// Tell who uses variable SYMBOL, or LEN bytes at OFFSET in it: thread, instruction, values. Four aligned words at most, by debug
    /// registers: every execution is traced, which takes many times longer
    #[arg(long, value_name = "SYMBOL[+OFFSET[:LEN]]", value_parser = point, help_heading = "Output")]
    pub watch: Vec<Point>,
    /// Make a mark after every N transitions of executions that go back: for tests.
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub marks: u64,
    /// Watch memory, and append what is recorded to FILE: for tests, see docs/WATCHING.md.
    #[arg(long, value_name = "FILE", hide = true)]
    pub watch_log: Option<PathBuf>,
    /// Calls of the program's function FUNC return each of 0 to N, as VS_toss(N) does, instead of running it
    #[arg(long, value_name = "FUNC:N", value_parser = toss, help_heading = "The system under test")]
    pub toss: Vec<Toss>,
}

impl Config {
    /// Bytes of freed blocks that each process keeps back, if that was asked for.
    pub fn quarantine(&self) -> Option<u64> {
        match self.heap {
            Heap::On => self.quarantine,
            Heap::Off => Some(0),
        }
    }

    /// Kinds of calls that go to the kernel, bits of [`vsrun_model::calls::KINDS`].
    pub fn kinds_let_through(&self) -> u32 {
        self.uncontrolled.iter().fold(0, |all, bit| all | bit)
    }

    /// What becomes of memory that threads use without an order. One execution alone (`--once`) proves nothing, so memory is watched there only
    /// when that is asked for.
    pub fn race(&self) -> Race {
        let without = matches!(self.search, SearchKind::Once | SearchKind::Stateful);
        self.race.unwrap_or(if without { Race::Off } else { Race::Explore })
    }

    /// Bytes that the processes of one execution may use.
    pub fn memory_size(&self) -> Option<u64> {
        match self.memory {
            Some(Memory::Size(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// When others see what a thread stores.
    pub fn memory_model(&self) -> MemoryModel {
        match (self.memory_model, self.memory) {
            (Some(model), _) | (None, Some(Memory::Model(model))) => model,
            _ => MemoryModel::Sc,
        }
    }

    /// Schedules are drawn by lot beside the search: not where what is run is counted, or goes on from what was run before.
    pub fn draws_first(&self) -> bool {
        self.draws && self.bounds.executions.is_none() && self.resume.is_none()
    }

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
    /// Tell who uses variable SYMBOL, or LEN bytes at OFFSET in it: thread, instruction, values
    #[arg(long, value_name = "SYMBOL[+OFFSET[:LEN]]", value_parser = point, conflicts_with = "no_supervisor")]
    pub watch: Vec<Point>,
    /// On a program that has changed since: follow the scenario by thread, kind and object of its steps, as far as they are still there,
    /// and say whether the bug still comes
    #[arg(long, conflicts_with = "no_supervisor")]
    pub relaxed: bool,
    /// End after N steps and show the state there; with --no-supervisor stop there in the debugger
    #[arg(long, value_name = "N", conflicts_with = "relaxed")]
    pub until: Option<u64>,
    /// Run it though somebody else wrote it, or another machine: what it runs is in the file
    #[arg(long)]
    pub trust: bool,
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

/// Says at which step another choice leads away from a scenario's bug.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Explain {
    /// Random continuations behind each choice that is tried
    #[arg(long, value_name = "K", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: u64,
    /// Stop after SECONDS
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = duration)]
    pub time: Duration,
    /// Seed of the continuations
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Run it though somebody else wrote it, or another machine: what it runs is in the file
    #[arg(long)]
    pub trust: bool,
    /// Form of the report: text, or json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Checks the machine, or says what of a program would be watched.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Doctor {
    /// A program and its arguments: say how its memory accesses would be watched, and which would not
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true)]
    pub program: Vec<OsString>,
}

/// Looks at a process that hangs.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Why {
    /// Form of the report: text, or json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
    /// The process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: i32,
}

/// The form of a picture of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PictureFormat {
    /// A page that needs nothing else.
    Html,
    /// Trace events, for Perfetto and chrome://tracing.
    Perfetto,
    /// Who waits for whom at the end, for Graphviz.
    Dot,
    /// All of it as one object.
    Json,
}

/// Draws a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Timeline {
    /// Form of the picture: html (a page that needs nothing else), perfetto (trace events for ui.perfetto.dev and
    /// chrome://tracing), dot (who waits for whom at the end, for Graphviz), json
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = PictureFormat::Html)]
    pub format: PictureFormat,
    /// File for the picture (default: stdout)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Run it though somebody else wrote it, or another machine: what it runs is in the file
    #[arg(long)]
    pub trust: bool,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The options of `vsrun trace`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct TraceOptions {
    /// The program (found in PATH unless it has a slash) and its arguments
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, num_args = 1.., required = true)]
    pub program: Vec<OsString>,
    /// Draw who goes next by lot, from this seed [default: who runs goes on while it can]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Cut it after N transitions
    #[arg(long = "max-depth", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub depth: Option<u64>,
    /// Cut it after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    pub time: Option<Duration>,
    /// One more process of the system, a client for instance: program and arguments, with quotes as for a shell
    #[arg(long, value_name = "CMD", value_parser = command_words)]
    pub with: Vec<Words>,
    /// Signal (name or number) for processes that only wait for peers when all others are done
    #[arg(long, value_name = "SIG", value_parser = signal_number)]
    pub stop_signal: Option<i32>,
    /// When timeouts of the program fire: any (whenever they could), urgent (when nothing else can run)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Timeouts::Any)]
    pub timeouts: Timeouts,
    /// CPU seconds without a visible operation that are a divergence
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = duration)]
    pub divergence_timeout: Duration,
    /// Let calls that are not modelled go to the kernel, by kind, separated by commas: inotify, fanotify, io_uring, remap
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = uncontrolled)]
    pub uncontrolled: Vec<u32>,
    /// What the program writes to files: real (the files are changed), private (a layer that is gone at the end)
    #[arg(long, value_enum, value_name = "WHERE", hide_possible_values = true, default_value_t = FilesName::Real)]
    pub files: FilesName,
    /// File for the program's own output (default: stderr)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Form of the list: text, or json (an object a line)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
}

/// Runs a program once and lists what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Seed by which who goes next is drawn; `None`: who runs goes on while it can.
    pub seed: Option<u64>,
    /// Form of the list.
    pub format: Format,
    /// The rest: one execution.
    pub config: Config,
}

/// What `vsrun debug` speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DebugFormat {
    /// gdb.
    Gdb,
    /// Commands and answers, an object a line.
    Json,
}

/// Opens a scenario in gdb, or stands at its steps.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Debug {
    /// gdb, or json: commands on standard input and answers on standard output, an object a line
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = DebugFormat::Gdb)]
    pub format: DebugFormat,
    /// File that the program reads from its standard input, if the scenario's program had one (with --format json)
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Run it though somebody else wrote it, or another machine: what it runs is in the file
    #[arg(long)]
    pub trust: bool,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Arguments for gdb
    #[arg(value_name = "GDB ARGS", last = true)]
    pub gdb: Vec<OsString>,
}

/// Stands at the steps of a scenario, in the terminal.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Step {
    /// File that the program reads from its standard input, if the scenario's program had one
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Run it though somebody else wrote it, or another machine: what it runs is in the file
    #[arg(long)]
    pub trust: bool,
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The options of `vsrun daemon`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct DaemonOptions {
    /// The daemon (found in PATH unless it has a slash) and its arguments; it stays in the foreground, or forks
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, num_args = 1.., required = true)]
    pub program: Vec<OsString>,
    /// A client: program and arguments, with quotes as for a shell; several run at the same time
    #[arg(long, value_name = "CMD", value_parser = command_words)]
    pub with: Vec<Words>,
    /// When clients begin, and signals may come: listening (once a socket listens), at-once, file:PATH (once that file exists), output:TEXT (once
    /// the daemon has printed that)
    #[arg(long, value_parser = ClientsParser, value_name = "WHEN", hide_possible_values = true, default_value = "listening")]
    pub clients: ClientsStart,
    /// Start the daemon again after its end: on-failure (a status other than 0, a signal other than HUP, INT, TERM and PIPE), always. No
    /// signal of --signal is a crash then
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true)]
    pub restart: Option<Restart>,
    /// So often, at most. That the last start exits with a status other than 0 by itself is a bug
    #[arg(long, value_name = "N", default_value_t = 1, requires = "restart", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub restarts: u32,
    /// Send the daemon this signal (name or number) at any moment; several are sent in any order
    #[arg(long, value_name = "SIG", value_delimiter = ',', value_parser = signal_number)]
    pub signal: Vec<i32>,
    /// File in which the daemon writes its process id, for --signal [default: the process that is started gets it]
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Signal at the end, when only clients are waited for and all have ended
    #[arg(long, value_name = "SIG", default_value = "TERM", value_parser = signal_number)]
    pub stop_signal: i32,
    /// How long all searches together may take: seconds, or 10m, 1h30m
    #[arg(long = "for", id = "for", value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub time: Duration,
    /// Stop at the first bug, instead of collecting different ones
    #[arg(long)]
    pub first: bool,
    /// Memory that threads use without an order, as without 'daemon' [default: explore; off in the random search, for Python and AddressSanitizer]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub race: Option<Race>,
    /// When timeouts of the program fire: any (whenever they could), urgent (when nothing else can run)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Timeouts::Any)]
    pub timeouts: Timeouts,
    /// CPU time without a visible operation that is a divergence: seconds, or 500ms, 1m
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = duration)]
    pub divergence_timeout: Duration,
    /// Let calls that are not modelled go to the kernel, by kind, separated by commas: inotify, fanotify, io_uring, remap
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = uncontrolled)]
    pub uncontrolled: Vec<u32>,
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Workers, a CPU each [default: all CPUs allowed]
    #[arg(short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,
    /// Directory for scenarios
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub scenario_dir: PathBuf,
    /// Form of the report: text, json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub format: Format,
}

/// Hunts for bugs of a daemon, one search after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Daemon {
    /// How long all searches together may take.
    pub time: Duration,
    /// The first bug ends it.
    pub first: bool,
    /// What was said of memory.
    pub race: Option<Race>,
    /// Form of the report.
    pub format: Format,
    /// The rest, for any search.
    pub config: Config,
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

/// Splits a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitPieces {
    /// Pieces.
    pub into: u32,
    /// Where they are written.
    pub dir: PathBuf,
    /// How long to look for shared objects before.
    pub look: Duration,
    /// What is split; nothing: what is there.
    pub search: Option<Searched>,
}

/// A search, as it is written into pieces.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched {
    /// Its options and the program.
    pub words: Vec<OsString>,
    /// The same, resolved.
    pub config: Config,
}

/// What is asked of pieces.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Pieces {
    /// To make them.
    Split(SplitPieces),
    /// To explore one.
    Work(WorkPiece),
    /// To sum them up.
    Merge(MergePieces),
    /// Split a piece.
    Divide(DividePiece),
}

/// Explores a search in pieces, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// What runs them.
    pub engine: Engine,
    /// So many at a time.
    pub nodes: Option<u32>,
    /// Pieces.
    pub into: Option<u32>,
    /// Where they are.
    pub dir: PathBuf,
    /// How long one is explored before another one has its turn.
    pub grain: Duration,
    /// How long to look for shared objects before.
    pub look: Duration,
    /// Form of the report.
    pub format: ReportFormat,
    /// Where scenarios are written.
    pub scenario_dir: PathBuf,
    /// What is explored; nothing: what is there.
    pub search: Option<Searched>,
    /// Executions are drawn by lot, and what is said of that.
    pub swarm: Option<SwarmBounds>,
}

/// What is said of a swarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmBounds {
    /// It was asked for by `--swarm`.
    pub asked: bool,
    /// How long, and how many executions, in all.
    pub time: Option<Duration>,
    /// See there.
    pub executions: Option<u64>,
    /// Seed.
    pub seed: Option<u64>,
    /// Faults that are varied.
    pub vary: Option<u32>,
}

/// Makes a pack.
#[derive(Clone, Debug, PartialEq)]
pub struct MakePack {
    /// Where.
    pub dir: PathBuf,
    /// More files.
    pub add: Vec<PathBuf>,
    /// More variables of the environment.
    pub env: Vec<OsString>,
    /// How long its executions are looked at.
    pub look: Duration,
    /// The search.
    pub packed: Packed,
    /// The same, resolved.
    pub config: Config,
}

/// What is asked of packs.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Pack {
    /// To make one.
    Make(MakePack),
    /// To look at one.
    Check(CheckPack),
    /// To run vsrun in one.
    Run(RunPack),
    /// To write an image of one.
    Oci(OciPack),
}
