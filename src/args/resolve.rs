//! The command line as clap reads it; raw arguments resolved, or refused.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::packed::{self, completed, filled, Wrong};
use crate::config::{
    Bounds, Checkpoint, Cluster, ClusterOptions, Command, Completions, Config, Daemon, DaemonOptions, Debug,
    DebugFormat, Doctor, Explain, Format, MakeOptions, MakePack, Man, MemoryModel, Pack, PackOptions, Packed, Pieces,
    PiecesOptions, Race, RawPack, RawPieces, Replay, ReportFormat, SearchKind, SearchName, Searched, Show,
    SplitOptions, SplitPieces, Step, SwarmBounds, Timeline, Trace, TraceOptions, Why, Words,
};
use crate::scenario::Toss;

/// The names that are vsrun's own; a program of that name is reached as `./NAME`.
const COMMANDS: [&str; 15] = [
    "replay",
    "debug",
    "explain",
    "step",
    "show",
    "timeline",
    "trace",
    "doctor",
    "why",
    "daemon",
    "pieces",
    "cluster",
    "pack",
    "completions",
    "man",
];

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

    fn refused(why: &str) -> UsageError {
        UsageError { text: format!("vsrun: {why}"), code: 2 }
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

impl From<Wrong> for UsageError {
    fn from(wrong: Wrong) -> UsageError {
        match wrong {
            Wrong::Usage(error) => UsageError::from(*error),
            Wrong::Packed(why) => UsageError::wrong(why),
        }
    }
}

/// These options of a search, with those of the pack that they do not give, and its program.
///
/// # Errors
/// There is something else among them.
pub fn search_words(given: &[OsString], packed: &Packed) -> Result<Vec<OsString>, UsageError> {
    Ok(filled(&command(), given, packed)?)
}

/// The options that such words give to a search, as they are kept in a pack, and its program.
///
/// # Errors
/// They ask for something else.
pub fn taken_apart(words: &[OsString]) -> Result<Packed, UsageError> {
    Ok(packed::packed(&command(), words)?)
}

/// Reads the command line; the first of `args` is the name of vsrun itself.
///
/// # Errors
/// Wrong usage and what is not supported yet (code 2); `--help` and `--version` (code 0).
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    parse_in(args, None)
}

/// The same in a pack: where a search is expected it is that one.
///
/// # Errors
/// Those of [`parse`].
pub fn parse_in(args: impl IntoIterator<Item = OsString>, packed: Option<&Packed>) -> Result<Command, UsageError> {
    let args: Vec<OsString> = args.into_iter().collect();
    let args =
        packed.map_or_else(|| Ok(args.clone()), |packed| completed(&command(), &COMMANDS, args.clone(), packed))?;
    let raw = Raw::from_arg_matches(&command().try_get_matches_from(&args)?)?;
    match raw.command {
        Some(RawCommand::Replay(replay)) => Ok(Command::Replay(replay)),
        Some(RawCommand::Explain(explain)) => Ok(Command::Explain(explain)),
        Some(RawCommand::Debug(debug)) if debug.format == DebugFormat::Json && !debug.gdb.is_empty() => {
            Err(UsageError::refused("arguments for gdb mean nothing with --format json"))
        }
        Some(RawCommand::Debug(debug)) if debug.format == DebugFormat::Gdb && debug.input.is_some() => Err(
            UsageError::refused("--input is for --format json: in gdb the program reads what gdb's terminal gives it"),
        ),
        Some(RawCommand::Debug(debug)) => Ok(Command::Debug(debug)),
        Some(RawCommand::Step(step)) => Ok(Command::Step(step)),
        Some(RawCommand::Show(show)) => Ok(Command::Show(show)),
        Some(RawCommand::Timeline(timeline)) => Ok(Command::Timeline(timeline)),
        Some(RawCommand::Trace(trace)) if trace.program[0].is_empty() => {
            Err(UsageError::wrong("the program's name is empty"))
        }
        Some(RawCommand::Trace(trace)) => one_execution(trace).map(Command::Trace),
        Some(RawCommand::Doctor(doctor)) => Ok(Command::Doctor(doctor)),
        Some(RawCommand::Why(why)) => Ok(Command::Why(why)),
        Some(RawCommand::Daemon(daemon)) if daemon.program[0].is_empty() => {
            Err(UsageError::wrong("the program's name is empty"))
        }
        Some(RawCommand::Daemon(daemon)) => hunt(*daemon).map(Command::Daemon),
        Some(RawCommand::Pieces(pieces)) => of_pieces(pieces.command, packed).map(Command::Pieces),
        Some(RawCommand::Cluster(options)) => of_cluster(*options, packed).map(Command::Cluster),
        Some(RawCommand::Pack(_)) if packed.is_some() => Err(UsageError::refused("vsrun runs in a pack already")),
        Some(RawCommand::Pack(options)) => of_pack(*options).map(Command::Pack),
        Some(RawCommand::Completions(completions)) => Ok(Command::Completions(completions)),
        Some(RawCommand::Man(man)) => Ok(Command::Man(man)),
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

fn resolve(mut config: Config) -> Result<Config, UsageError> {
    check_tosses(&config)?;
    config.search = match config.bound {
        Some(bound) => SearchKind::Bounded(bound),
        None if config.once => SearchKind::Once,
        None => search_kind(config.search_name.unwrap_or(SearchName::Optimal))?,
    };
    if config.states.is_some() {
        config.search = with_states(&config)?;
    }
    // Who asks for a search by name has that one.
    config.draws = config.search_name.is_none() && config.search == SearchKind::Optimal;
    if config.memory_model() == MemoryModel::Tso && config.race() != Race::Explore {
        return Err(UsageError::wrong("--memory tso is about memory that is watched: it needs --race explore"));
    }
    let in_blocks = matches!(config.search, SearchKind::Composed | SearchKind::Transactions);
    if in_blocks && config.race().flaws().unordered {
        // They come to no state in which both uses are next, where one is inside of a block.
        return Err(UsageError::wrong(format!(
            "--race {} needs every order of operations: another search than {}",
            config.race().name(),
            config.search.name()
        )));
    }
    if config.search == SearchKind::Stateful {
        check_stateful(&config)?;
    }
    if config.refine.is_some() && config.search != SearchKind::Transactions {
        return Err(UsageError::wrong("--refine is about what --search transactions assumes"));
    }
    Ok(config)
}

/// The search of `--states`.
fn with_states(config: &Config) -> Result<SearchKind, UsageError> {
    match config.search {
        SearchKind::Naive | SearchKind::Stateful => Ok(SearchKind::Stateful),
        _ if config.search_name.is_none() && config.search == SearchKind::Optimal => Ok(SearchKind::Stateful),
        _ => Err(UsageError::refused(
            "--states goes with --search naive or stateful: one that leaves out orders would miss races between what comes before a state and what comes behind it",
        )),
    }
}

/// What tells states apart is not all that other options need.
fn check_stateful(config: &Config) -> Result<(), UsageError> {
    if config.race() != Race::Off {
        // What was done to memory before a state is no part of it.
        return Err(UsageError::refused("--search stateful does not watch memory: it goes with --race off"));
    }
    if matches!(config.checkpoint, Checkpoint::Fork | Checkpoint::Replay | Checkpoint::Copies) {
        return Err(UsageError::refused(
            "--search stateful tells states by what differs from the first one: it goes with --checkpoint auto or rollback",
        ));
    }
    Ok(())
}

/// What `vsrun trace` runs: as `--once` does.
fn one_execution(options: TraceOptions) -> Result<Trace, UsageError> {
    let defaults = Raw::try_parse_from(["vsrun", "--once", "--race", "off", "--progress", "never", "."])?.explore;
    let bounds = Bounds { depth: options.depth, time: options.time, ..Bounds::default() };
    let config = Config {
        program: options.program,
        with: options.with,
        bounds,
        stop_signal: options.stop_signal,
        timeouts: options.timeouts,
        divergence_timeout: options.divergence_timeout,
        uncontrolled: options.uncontrolled,
        files: Some(options.files),
        output: options.output,
        seed: options.seed.unwrap_or(0),
        ..defaults
    };
    Ok(Trace { seed: options.seed, format: options.format, config: resolve(config)? })
}

/// The process id that the program has in its world: the first one.
const FIRST_PID: u32 = 1001;

/// What `vsrun daemon` runs. A signal is sent by one more client, so it comes at any moment that the search chooses.
fn hunt(options: DaemonOptions) -> Result<Daemon, UsageError> {
    let defaults = Raw::try_parse_from(["vsrun", "--keep-going", "."])?.explore;
    let restarts = options.restart.map_or(0, |_| options.restarts);
    let roots = (options.with.len() + options.signal.len()) as u32;
    let starts: Vec<u32> =
        std::iter::once(FIRST_PID).chain((1..=restarts).map(|start| FIRST_PID + roots + start)).collect();
    let quiet = if restarts > 0 { " 2>/dev/null" } else { "" };
    let signal = |signal: &i32| {
        let script = match &options.pid_file {
            Some(_) => format!("read pid <\"$0\" && kill -{signal} \"$pid\""),
            // The start that there is: ids of those that are over, or still to come, are nobody's.
            None => starts.iter().map(|pid| format!("kill -{signal} {pid}{quiet}")).collect::<Vec<_>>().join(" || "),
        };
        let file = options.pid_file.clone().map_or_else(|| "signal".into(), OsString::from);
        Words(vec!["sh".into(), "-c".into(), script.into(), file])
    };
    if options.pid_file.is_some() && options.signal.is_empty() {
        return Err(UsageError::wrong("--pid-file says who gets --signal"));
    }
    let config = Config {
        with: options.with.iter().cloned().chain(options.signal.iter().map(signal)).collect(),
        program: options.program.clone(),
        clients: options.clients,
        restart: options.restart,
        restarts: options.restarts,
        stop_signal: Some(options.stop_signal),
        timeouts: options.timeouts,
        divergence_timeout: options.divergence_timeout,
        uncontrolled: options.uncontrolled.clone(),
        seed: options.seed,
        workers: options.workers,
        scenario_dir: options.scenario_dir.clone(),
        race: options.race,
        format: if options.format == Format::Json { ReportFormat::Json } else { ReportFormat::Text },
        ..defaults
    };
    let DaemonOptions { time, first, race, format, .. } = options;
    Ok(Daemon { time, first, race, format, config: resolve(config)? })
}

/// What is asked of pieces. The options of the search that is split are kept as they are: whoever explores a piece reads them again.
fn of_pieces(command: RawPieces, packed: Option<&Packed>) -> Result<Pieces, UsageError> {
    let options = match command {
        RawPieces::Work(work) => return Ok(Pieces::Work(work)),
        RawPieces::Merge(merge) => return Ok(Pieces::Merge(merge)),
        RawPieces::Divide(divide) => return Ok(Pieces::Divide(divide)),
        RawPieces::Split(options) => options,
    };
    let options = match packed {
        Some(packed) if !options.again => SplitOptions { command: search_words(&options.command, packed)?, ..options },
        _ => options,
    };
    let search = match (options.command.is_empty(), options.again) {
        (true, true) => None,
        (false, false) => Some(Searched { config: searched(&options.command)?, words: options.command }),
        (true, false) => return Err(UsageError::wrong("no program given")),
        (false, true) => return Err(UsageError::wrong("--again splits what is in DIR: it takes no program")),
    };
    Ok(Pieces::Split(SplitPieces { into: options.into, dir: options.dir, look: options.look, search }))
}

/// What is asked of a cluster.
fn of_cluster(options: ClusterOptions, packed: Option<&Packed>) -> Result<Cluster, UsageError> {
    let said = SwarmBounds {
        asked: options.swarm,
        time: options.time,
        executions: options.executions,
        seed: options.seed,
        vary: options.vary.map(|faults| faults.iter().fold(0, |all, bit| all | bit)),
    };
    let ClusterOptions { engine, nodes, into, dir, grain, look, format, scenario_dir, command, .. } = options;
    let command = match packed {
        Some(packed) if !command.is_empty() => search_words(&command, packed)?,
        _ => command,
    };
    let search = match command.is_empty() {
        true => None,
        false if said.asked => Some(Searched { config: Config { format, ..drawn(&command)? }, words: command }),
        false => Some(Searched { config: Config { format, ..searched(&command)? }, words: command }),
    };
    let bounded = said.time.is_some() || said.executions.is_some();
    if search.is_some() && !said.asked && (bounded || said.seed.is_some() || said.vary.is_some()) {
        return Err(UsageError::wrong(
            "--time, --max-executions, --seed and --vary are about --swarm: all pieces are explored",
        ));
    }
    if said.asked && into.is_some() {
        return Err(UsageError::wrong("--into is about pieces, and a swarm has none"));
    }
    if said.asked && !matches!(format, ReportFormat::Text | ReportFormat::Json) {
        return Err(UsageError::wrong("the report of a swarm is text or json"));
    }
    let swarm = (said != SwarmBounds::default()).then_some(said);
    Ok(Cluster { engine, nodes, into, dir, grain, look, format, scenario_dir, search, swarm })
}

/// What is asked of packs.
fn of_pack(options: PackOptions) -> Result<Pack, UsageError> {
    let make = match options.command {
        Some(RawPack::Check(check)) => return Ok(Pack::Check(check)),
        Some(RawPack::Run(run)) => return Ok(Pack::Run(run)),
        Some(RawPack::Oci(oci)) => return Ok(Pack::Oci(oci)),
        None => options.make,
    };
    let MakeOptions { dir, add, env, look, words } = make;
    let packed = packed::packed(&command(), &words)?;
    let raw = Raw::from_arg_matches(&command().try_get_matches_from(["vsrun".into()].iter().chain(&words))?)?;
    let dir = dir.ok_or_else(|| UsageError::wrong("-o DIR says where the pack is to be"))?;
    Ok(Pack::Make(MakePack { dir, add, env, look, packed, config: resolve(raw.explore)? }))
}

/// The search that such words ask for, as after `vsrun`: one that can be split.
///
/// # Errors
/// They ask for something else.
pub fn searched(words: &[OsString]) -> Result<Config, UsageError> {
    let raw = Raw::from_arg_matches(&command().try_get_matches_from(["vsrun".into()].iter().chain(words))?)?;
    if raw.command.is_some() || raw.explore.program.is_empty() {
        return Err(UsageError::wrong("pieces are those of a search: options and a program are expected"));
    }
    let config = resolve(raw.explore)?;
    let bounded = config.bounds.executions.is_some() || config.bounds.time.is_some();
    let refused = [
        (config.search != SearchKind::Optimal, "only --search optimal can be split"),
        (
            config.save.is_some() || config.resume.is_some(),
            "pieces keep what they come to by themselves: no --save, no --resume",
        ),
        (bounded, "a bound of time or executions is one of 'pieces work', not of the search that is split"),
        (
            !config.save_outcome.is_empty() || config.save_cut,
            "--save-outcome and --save-cut mean nothing for a search that is split",
        ),
        (!config.watch.is_empty(), "--watch means nothing for a search that is split"),
    ];
    match refused.iter().find(|(refused, _)| *refused) {
        Some((_, why)) => Err(UsageError::refused(why)),
        None => Ok(Config { draws: false, ..config }),
    }
}

/// The program and the options that such words say of a swarm, which chooses searches by itself.
///
/// # Errors
/// They ask for something else.
pub fn drawn(words: &[OsString]) -> Result<Config, UsageError> {
    let raw = Raw::from_arg_matches(&command().try_get_matches_from(["vsrun".into()].iter().chain(words))?)?;
    if raw.command.is_some() || raw.explore.program.is_empty() {
        return Err(UsageError::wrong("a swarm is of a program: options and a program are expected"));
    }
    let chosen = raw.explore.search_name.is_some();
    let config = resolve(raw.explore)?;
    let refused = [
        (chosen || config.search != SearchKind::Optimal, "--swarm chooses the searches: no --search, --bound, --once"),
        (
            config.save.is_some() || config.resume.is_some(),
            "a swarm keeps what it comes to by itself: no --save, no --resume",
        ),
        (!config.save_outcome.is_empty() || config.save_cut, "--save-outcome and --save-cut mean nothing for a swarm"),
        (!config.watch.is_empty(), "--watch means nothing for a swarm"),
    ];
    match refused.iter().find(|(refused, _)| *refused) {
        Some((_, why)) => Err(UsageError::refused(why)),
        None => Ok(Config { draws: false, ..config }),
    }
}

/// A function is named once: what else it would return is nobody's guess.
fn check_tosses(config: &Config) -> Result<(), UsageError> {
    let twice = |(n, toss): (usize, &Toss)| config.toss[..n].iter().any(|before| before.function == toss.function);
    match config.toss.iter().enumerate().find(|&named| twice(named)) {
        Some((_, toss)) => Err(UsageError::wrong(format!("--toss names '{}' twice", toss.function))),
        None => Ok(()),
    }
}

fn search_kind(name: SearchName) -> Result<SearchKind, UsageError> {
    match name {
        SearchName::Optimal => Ok(SearchKind::Optimal),
        SearchName::Naive => Ok(SearchKind::Naive),
        SearchName::Stateful => Ok(SearchKind::Stateful),
        SearchName::Traces => Ok(SearchKind::Traces),
        SearchName::Dpor => Ok(SearchKind::Dpor),
        SearchName::Sss => Ok(SearchKind::Sss),
        SearchName::IfSss => Ok(SearchKind::IfSss),
        SearchName::Composed => Ok(SearchKind::Composed),
        SearchName::Transactions => Ok(SearchKind::Transactions),
        SearchName::Exitblock => Ok(SearchKind::ExitBlock),
        SearchName::ExitblockRw => Ok(SearchKind::ExitBlockRw),
        SearchName::Random => Ok(SearchKind::Random),
        SearchName::Walk => Ok(SearchKind::Walk),
        SearchName::Pos => Ok(SearchKind::Pos),
        SearchName::Surw => Ok(SearchKind::Surw),
        SearchName::Rff => Ok(SearchKind::Rff),
        SearchName::Novel => Ok(SearchKind::Novel),
        SearchName::Predict => Ok(SearchKind::Predict),
        SearchName::Pct => Ok(SearchKind::Pct),
    }
}

const ABOUT: &str = "\
Systematic concurrency checker for unmodified native programs.

Runs PROGRAM, a closed system of processes and threads, in one interleaving after the other and reports
deadlocks, assertion failures, crashes, divergences, livelocks and races (--race hb). Each bug is written as a
scenario that replays it exactly.";

pub(super) const EXAMPLES: &str = "\
  vsrun ./robot_controller              explore until the first bug; it is written as a scenario
  vsrun --keep-going --time 60 ./prog   collect different bugs for a minute
  vsrun --once ./prog arg               one execution, as it would run by itself
  vsrun replay prog-deadlock-1.vsrun.json
  vsrun debug prog-deadlock-1.vsrun.json      in gdb, at any step: vs who, vs threads, vs back, vs goto 12
  vsrun timeline prog-deadlock-1.vsrun.json -o bug.html   a picture of it, for a browser
  vsrun trace ./prog arg                one execution as a list of what its threads do
  vsrun daemon --with './client 8080' --for 10m ./daemon 8080   the hunt for a daemon: one search after the other
  vsrun doctor                          can this machine run vsrun, and if not, what to do
  vsrun why 4711                        process 4711 hangs, started without vsrun: who waits for whom";

pub(super) const EXIT_STATUS: &str = "\
0  explored completely and no bug        1  bug        2  usage, environment or unsupported program
3  no bug within the bounds              4  the replay diverged, or a bug of vsrun";

/// Ids of the options of a search that `-h` shows.
const FIRST: [&str; 19] = [
    "search",
    "bound",
    "once",
    "keep_going",
    "executions",
    "time",
    "workers",
    "save",
    "resume",
    "with",
    "stop_signal",
    "toss",
    "inject",
    "race",
    "divergence_timeout",
    "fail_on_exit",
    "scenario_dir",
    "output",
    "format",
];

/// The command line with all that is said of it.
pub(super) fn definition() -> clap::Command {
    let end = format!("Exit status:\n{EXIT_STATUS}");
    let all = format!("Examples:\n{EXAMPLES}\n\n{end}");
    Raw::command().after_help(format!("{end}\n\nAll options: vsrun --help")).after_long_help(all)
}

/// The same as it is read: `-h` has the options that one needs first, `--help` all of them.
fn command() -> clap::Command {
    definition().mut_args(|arg| {
        let first = FIRST.contains(&arg.get_id().as_str()) || arg.get_help_heading().is_none();
        arg.hide_short_help(!first)
    })
}

#[derive(Debug, Parser)]
#[command(name = "vsrun", bin_name = "vsrun", version, about = ABOUT, long_about = None)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, override_usage = SHORT_USAGE)]
struct Raw {
    #[command(subcommand)]
    command: Option<RawCommand>,
    #[command(flatten)]
    explore: Config,
}

/// What help begins with: the commands are listed below it.
const SHORT_USAGE: &str = "\
vsrun [OPTIONS] PROGRAM [ARGS]...
       vsrun COMMAND ..., with options of its own: vsrun COMMAND --help";

/// The whole of it, for the manual page.
pub(super) const USAGE: &str = "\
vsrun [OPTIONS] PROGRAM [ARGS]...
       vsrun replay [--no-supervisor | --relaxed] [--until N] [--watch SYMBOL] [--trust] [--output FILE] [--format text|json] FILE
       vsrun explain [--samples K] [--time SECONDS] [--seed N] [--trust] [--format text|json] FILE
       vsrun debug [--format gdb|json] [--input FILE] [--trust] FILE [-- GDB ARGS...]
       vsrun step [--input FILE] [--trust] FILE
       vsrun show [--format text|json] FILE
       vsrun timeline [--format html|perfetto|dot|json] [-o FILE] [--trust] FILE
       vsrun trace [OPTIONS] PROGRAM [ARGS]...
       vsrun daemon [OPTIONS] PROGRAM [ARGS]...
       vsrun pieces split|work|divide|merge ...
       vsrun cluster [--swarm] [--engine local|slurm|hq] [-n N] -o DIR [OPTIONS] [PROGRAM [ARGS]...]
       vsrun pack -o DIR [--add PATH] [--env NAME[=VALUE]] [OPTIONS] PROGRAM [ARGS]...
       vsrun pack check|run DIR ...
       vsrun pack oci -o IMAGE DIR
       vsrun doctor [PROGRAM [ARGS]...]
       vsrun why [--format text|json] PID";

#[derive(Debug, Subcommand)]
enum RawCommand {
    /// Run a scenario again, step by step the same
    Replay(Replay),
    /// Open a scenario in gdb, at any step, forward and back; or (--format json) for editors and programs
    Debug(Debug),
    /// Find the step of a scenario at which another choice leads away from its bug
    Explain(Explain),
    /// Stand at any step of a scenario, go back, and choose another way, in the terminal
    Step(Step),
    /// Print what a scenario file holds, with all its steps
    Show(Show),
    /// Draw a scenario: a page with lanes of threads, arrows between them, and who waits for whom
    Timeline(Timeline),
    /// Run a program once and list its visible operations
    Trace(TraceOptions),
    /// Check whether this machine can run vsrun, or how memory of a program would be watched
    Doctor(Doctor),
    /// Say who waits for whom in a process that hangs now; it is not changed
    Why(Why),
    /// Hunt for bugs of a daemon: clients, signals, one search after the other, one verdict
    Daemon(Box<DaemonOptions>),
    /// Split a search into pieces that other machines explore, explore one, sum up
    Pieces(PiecesOptions),
    /// Explore a search in pieces side by side, or draw executions (--swarm); go on where it was broken off
    Cluster(Box<ClusterOptions>),
    /// Pack a program with all that it needs into a directory, to run from there on any machine
    Pack(Box<PackOptions>),
    /// Print what a shell reads to complete vsrun's arguments
    #[command(hide = true)]
    Completions(Completions),
    /// Write the man pages
    #[command(hide = true)]
    Man(Man),
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
