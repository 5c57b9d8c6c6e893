//! The command line: raw arguments in, a resolved [`Command`] out, so that main reads as a table of modes.
//!
//! What the contract names but a later stage brings is parsed and refused here, so that nothing is ignored silently.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::search::Bound;

/// What `--search` is when it is not given.
const DEFAULT_SEARCH: SearchName = SearchName::Optimal;

/// The names that are vsrun's own; a program of that name is reached as `./NAME`.
const COMMANDS: [&str; 3] = ["replay", "show", "doctor"];

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

/// Why vsrun stops at once: wrong usage (exit code 2), or `--help` and `--version` (0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// What to print, without the last line end: one line that starts with `vsrun: ` unless it is help.
    pub text: String,
    /// Exit code. 0: the text belongs on stdout; otherwise on stderr.
    pub code: i32,
}

impl UsageError {
    fn wrong(what: impl std::fmt::Display) -> UsageError {
        UsageError { text: format!("vsrun: {what}; try 'vsrun --help'"), code: 2 }
    }

    fn not_yet(what: impl std::fmt::Display) -> UsageError {
        UsageError { text: format!("vsrun: {what} is not supported yet"), code: 2 }
    }
}

impl From<clap::Error> for UsageError {
    /// clap's first paragraph on one line; the rest of its text repeats the help.
    fn from(error: clap::Error) -> UsageError {
        let text = error.render().to_string();
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            return UsageError { text: text.trim_end().to_string(), code: 0 };
        }
        let words =
            text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
        let line = words.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        UsageError::wrong(line.strip_prefix("error: ").unwrap_or(&line))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SearchName {
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
enum CheckpointName {
    Auto,
    Fork,
    #[value(hide = true)]
    Replay,
    #[value(hide = true)]
    Rollback,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RaceName {
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
struct Raw {
    #[command(subcommand)]
    command: Option<RawCommand>,
    #[command(flatten)]
    explore: RawExplore,
}

const USAGE: &str = "\
vsrun [OPTIONS] PROGRAM [ARGS]...
       vsrun replay [--no-supervisor] [--output FILE] [--format text|json] FILE
       vsrun show [--format text|json] FILE
       vsrun doctor";

#[derive(Debug, Subcommand)]
enum RawCommand {
    /// Run a scenario again, step by step the same
    Replay(Replay),
    /// Print what a scenario file holds, with all its steps
    Show(Show),
    /// Check whether this machine can run vsrun
    Doctor,
}

#[derive(Debug, Args)]
struct RawExplore {
    /// The program (found in PATH unless it has a slash) and its arguments
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true, num_args = 1..)]
    program: Vec<OsString>,

    /// How to explore; random, walk (which draws threads by what they have left) and pct go on for ever
    #[arg(long, value_enum, default_value_t = DEFAULT_SEARCH, help_heading = "Search")]
    search: SearchName,
    /// One execution with the default policy
    #[arg(long, conflicts_with_all = ["search", "keep_going", "max_executions"], help_heading = "Search")]
    once: bool,
    /// Explore on after the first bug
    #[arg(long, help_heading = "Search")]
    keep_going: bool,
    /// Only what K switches away from threads that could go on bring about (preemptions=K, reduced), or all schedules
    /// within K delays (delays=K); those of cost 0 first, then 1, ..
    #[arg(long, value_name = "KIND=K", value_parser = bound, conflicts_with_all = ["search", "once"], help_heading = "Search")]
    bound: Option<Bound>,
    /// Depth of the bugs that --search pct looks for
    #[arg(long, value_name = "D", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Search")]
    pct_depth: u32,
    /// Cut every execution after N transitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Search")]
    max_depth: Option<u64>,
    /// Stop after N executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Search")]
    max_executions: Option<u64>,
    /// Stop after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Search")]
    time: Option<Duration>,
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    seed: u64,
    /// Workers, a CPU each [default: all CPUs allowed]
    #[arg(short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Search")]
    workers: Option<u32>,
    /// Make operations on objects that only one thread uses transitions too (naive always does)
    #[arg(long, help_heading = "Objects")]
    all_objects: bool,
    /// Say that only one thread uses the synchronization objects in variable SYMBOL; checked, for naive too
    #[arg(long, value_name = "SYMBOL", help_heading = "Objects")]
    unshared: Vec<String>,
    /// Never switch threads at operations on the objects in variable SYMBOL: their order does not matter, and while one
    /// is held there is no other place to switch; the latter is checked
    #[arg(long, value_name = "SYMBOL", help_heading = "Objects")]
    atomic: Vec<String>,
    /// File with lines 'unshared SYMBOL' and 'atomic SYMBOL'
    #[arg(long, value_name = "FILE", help_heading = "Objects")]
    annotations: Option<PathBuf>,
    /// How to get back to a branching point
    #[arg(long, value_enum, default_value_t = CheckpointName::Auto, help_heading = "Search")]
    checkpoint: CheckpointName,

    /// When timeouts of the program fire: urgent (when nothing else can run), any (always)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Timeouts::Urgent, help_heading = "What counts as a bug")]
    timeouts: Timeouts,
    /// CPU seconds without a visible operation that are a divergence
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds, help_heading = "What counts as a bug")]
    divergence_timeout: Duration,
    /// States in a row in which a process can do nothing that are a livelock [default: off]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "What counts as a bug")]
    livelock: Option<u32>,
    /// Detect accesses without a lock
    #[arg(long, value_enum, default_value_t = RaceName::Off, help_heading = "What counts as a bug")]
    race: RaceName,
    /// A process that exits with a status other than 0 is a bug
    #[arg(long, help_heading = "What counts as a bug")]
    fail_on_exit: bool,
    /// Misuse such as unlocking a free mutex does what glibc does instead of being a bug
    #[arg(long, help_heading = "What counts as a bug")]
    allow_misuse: bool,

    /// Save the state of the search to FILE every 5 seconds and at the end
    #[arg(long, value_name = "FILE", conflicts_with = "once", help_heading = "Search")]
    save: Option<PathBuf>,
    /// Go on from a state that was saved, and save to it again
    #[arg(long, value_name = "FILE", conflicts_with = "once", help_heading = "Search")]
    resume: Option<PathBuf>,
    /// Directory for scenarios
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "Output")]
    scenario_dir: PathBuf,
    /// File for the program's own output (default: stderr)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Form of the report: text, or json (one object on stdout)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text, help_heading = "Output")]
    format: Format,
    /// A line about progress on stderr: auto (not with json), always, never
    #[arg(long, value_enum, value_name = "WHEN", hide_possible_values = true, default_value_t = ProgressMode::Auto, help_heading = "Output")]
    progress: ProgressMode,

    /// Faults of the environment that may strike, separated by commas: short-io, eintr, eagain, enomem, spurious
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = fault, help_heading = "Search")]
    inject: Vec<u32>,
    /// What the program writes to files: private (a layer that each execution starts without; the files themselves stay
    /// as they are), real (the files are changed) [default: private, with --once real]
    #[arg(long, value_enum, value_name = "WHERE", hide_possible_values = true, help_heading = "Objects")]
    files: Option<FilesName>,
    /// One more process of the system, a client for instance: program and arguments, with quotes as for a shell
    #[arg(long, value_name = "CMD", value_parser = command_words, help_heading = "Objects")]
    with: Vec<Words>,
    /// Signal (name or number) for processes that only wait for peers when all others are done: explores their end
    #[arg(long, value_name = "SIG", value_parser = signal_number, help_heading = "Objects")]
    stop_signal: Option<i32>,
    #[arg(long, hide = true)]
    #[arg(long, hide = true)]
    watch: Vec<OsString>,
    #[arg(long, hide = true)]
    toss: Vec<OsString>,
}

/// One of the names of [`vsrun_model::inject::NAMES`], as its bit.
fn fault(text: &str) -> Result<u32, String> {
    let known = vsrun_model::inject::NAMES;
    let found = known.iter().find(|(name, _)| *name == text).map(|(_, bit)| *bit);
    found.ok_or_else(|| format!("faults are {}", known.map(|(name, _)| name).join(", ")))
}

/// `preemptions=K` or `delays=K`.
fn bound(text: &str) -> Result<Bound, String> {
    let wrong = || "preemptions=K or delays=K is needed".to_string();
    let (kind, k) = text.split_once('=').ok_or_else(wrong)?;
    let k = k.parse().ok().filter(|k| *k <= 1000).ok_or("K is a number, 1000 or less")?;
    match kind {
        "preemptions" => Ok(Bound::Preemptions(k)),
        "delays" => Ok(Bound::Delays(k)),
        _ => Err(wrong()),
    }
}

/// A command as words.
#[derive(Clone, Debug)]
struct Words(Vec<OsString>);

/// Splits a command into words: quotes and backslashes as in a shell, and nothing else that a shell does.
fn command_words(text: &str) -> Result<Words, String> {
    const FOR_A_SHELL: &str = "$`|&;<>()*?[~#\n";
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"'), '$' | '`') | (None, _) if quote.is_some() || FOR_A_SHELL.contains(c) => {
                return Err(format!("'{c}' needs a shell: sh -c '...'"));
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            (None, '\\') | (Some('"'), '\\') => {
                let next = letters.next().ok_or("a backslash at the end")?;
                let word = word.get_or_insert_with(String::new);
                if quote.is_some() && !"\"\\$`".contains(next) {
                    word.push('\\');
                }
                word.push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (_, c) => word.get_or_insert_with(String::new).push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    words.extend(word.map(OsString::from));
    match words.is_empty() {
        true => Err("no program".into()),
        false => Ok(Words(words)),
    }
}

/// A signal by name, with or without SIG, or by number.
fn signal_number(text: &str) -> Result<i32, String> {
    use std::str::FromStr;
    if let Ok(number) = text.parse::<i32>() {
        return Some(number).filter(|n| (1..=64).contains(n)).ok_or("signals are 1 to 64".into());
    }
    let upper = text.to_ascii_uppercase();
    let name = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    nix::sys::signal::Signal::from_str(&name).map(|signal| signal as i32).map_err(|_| "no such signal".into())
}

/// A positive number of seconds, fractions allowed.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().map_err(|_| "a number of seconds is needed".to_string())?;
    match Duration::try_from_secs_f64(number) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err("a positive number of seconds, 0.001 or more, is needed".to_string()),
    }
}

/// Reads the command line; the first of `args` is the name of vsrun itself.
///
/// # Errors
/// Wrong usage and what is not supported yet (code 2); `--help` and `--version` (code 0).
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let args: Vec<OsString> = args.into_iter().collect();
    let raw = Raw::try_parse_from(&args)?;
    match raw.command {
        Some(RawCommand::Replay(replay)) => Ok(Command::Replay(replay)),
        Some(RawCommand::Show(show)) => Ok(Command::Show(show)),
        Some(RawCommand::Doctor) => Ok(Command::Doctor),
        None => {
            check_program(&args, &raw.explore.program)?;
            resolve(raw.explore).map(Command::Explore)
        }
    }
}

/// Options of a command stand after its name; before it, the name would be taken for a program's.
fn check_program(args: &[OsString], program: &[OsString]) -> Result<(), UsageError> {
    let Some(name) = program.first() else { return Err(UsageError::wrong("no program given")) };
    let forced = args.len() > program.len() && args[args.len() - program.len() - 1] == "--";
    match COMMANDS.iter().find(|command| name == *command) {
        Some(command) if !forced => Err(UsageError::wrong(format!(
            "options of '{command}' stand after it (for a program of that name: ./{command})"
        ))),
        _ if name.is_empty() => Err(UsageError::wrong("the program's name is empty")),
        _ => Ok(()),
    }
}

fn resolve(raw: RawExplore) -> Result<Config, UsageError> {
    refuse_later_work(&raw)?;
    Ok(Config {
        search: match raw.bound {
            Some(bound) => SearchKind::Bounded(bound),
            None if raw.once => SearchKind::Once,
            None => search_kind(raw.search)?,
        },
        pct_depth: raw.pct_depth,
        bounds: Bounds { depth: raw.max_depth, executions: raw.max_executions, time: raw.time },
        keep_going: raw.keep_going,
        seed: raw.seed,
        timeouts: raw.timeouts,
        inject: raw.inject.iter().fold(0, |all, bit| all | bit),
        checkpoint: checkpoint(raw.checkpoint)?,
        divergence_timeout: raw.divergence_timeout,
        livelock: raw.livelock,
        fail_on_exit: raw.fail_on_exit,
        files: raw.files,
        with: raw.with.into_iter().map(|words| words.0).collect(),
        stop_signal: raw.stop_signal.unwrap_or(0),
        allow_misuse: raw.allow_misuse,
        all_objects: raw.all_objects,
        unshared: raw.unshared,
        atomic: raw.atomic,
        annotations: raw.annotations,
        workers: raw.workers,
        progress: raw.progress,
        save: raw.save,
        resume: raw.resume,
        scenario_dir: raw.scenario_dir,
        output: raw.output,
        format: raw.format,
        program: raw.program,
    })
}

fn refuse_later_work(raw: &RawExplore) -> Result<(), UsageError> {
    let later = [
        ("--watch", !raw.watch.is_empty()),
        ("--toss", !raw.toss.is_empty()),
        ("--race other than off", raw.race != RaceName::Off),
    ];
    later.iter().find(|(_, given)| *given).map_or(Ok(()), |(what, _)| Err(UsageError::not_yet(what)))
}

fn search_kind(name: SearchName) -> Result<SearchKind, UsageError> {
    match name {
        SearchName::Optimal => Ok(SearchKind::Optimal),
        SearchName::Naive => Ok(SearchKind::Naive),
        SearchName::Traces => Ok(SearchKind::Traces),
        SearchName::Dpor => Ok(SearchKind::Dpor),
        SearchName::Sss => Ok(SearchKind::Sss),
        SearchName::IfSss => Ok(SearchKind::IfSss),
        SearchName::Exitblock => Ok(SearchKind::ExitBlock),
        SearchName::ExitblockRw => Ok(SearchKind::ExitBlockRw),
        SearchName::Random => Ok(SearchKind::Random),
        SearchName::Walk => Ok(SearchKind::Walk),
        SearchName::Pct => Ok(SearchKind::Pct),
        later => Err(UsageError::not_yet(format!("--search {}", name_of(&later)))),
    }
}

fn checkpoint(name: CheckpointName) -> Result<Checkpoint, UsageError> {
    match name {
        CheckpointName::Auto => Ok(Checkpoint::Auto),
        CheckpointName::Fork => Ok(Checkpoint::Fork),
        later => Err(UsageError::not_yet(format!("--checkpoint {}", name_of(&later)))),
    }
}

fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |v| v.get_name().to_string())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
