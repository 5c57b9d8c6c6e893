//! What does not change while an exploration runs: the program, the options, the search.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use vsrun_model::closing::MAX_AWAITED_TEXT;
use vsrun_model::End;

use super::annotations::annotated;
use super::failure::Failure;
use crate::base::{files, surroundings};
use crate::binary::sites::Choice;
use crate::binary::{self, BinaryId};
use crate::config::{
    ClientsStart, Config, CpuName, MemoryModel, Refine, Restart, SearchKind, StatesAsked, Timeouts, Words,
};
use crate::incomplete::Reason;
use crate::runtime::streams::Input;
use crate::runtime::{cpu, room, tracee, Spec, Watch as WatchMemory, Worker};
use crate::scenario::{Awaited, Client, Options, Program, Scenario};
use crate::schedule::Schedule;
use crate::search::{self, Bound, Bounded, BoundedReduction, Novel, Pct, Rff, Search, Split, Transactions, Watch};
use crate::trace::Trace;

/// Transitions without progress after which an execution is cut when no bound is given and the search looks at every state.
const DEFAULT_IDLE: u64 = 100_000;
/// The same of a search that draws lots, which looks at none of them: so that each execution has an end.
const RANDOM_IDLE: u64 = 1_000_000;
/// One that makes progress may go on for so many times as many. A schedule has room for as many as the search that looks at every state allows.
const LONGER: u64 = 4;

/// What does not change while an exploration runs.
pub(super) struct Setting<'a> {
    pub config: &'a Config,
    pub spec: Spec,
    /// Tells a changed program.
    pub identity: serde_json::Value,
    /// When the time is over (`--time`).
    pub until: Option<Instant>,
    /// What of the search.
    pub of: Of,
}

/// What of a search is explored.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Of {
    /// All of it.
    Whole,
    /// Nothing, it is split into so many pieces.
    Split(usize),
    /// Nothing, a piece that is saved so is split into so many.
    Again(Vec<u8>, usize),
    /// A piece.
    Piece(Piece),
    /// Executions drawn by lot, a task of a swarm.
    Lot(Box<Lot>),
}

/// What a task of a swarm is, beside its options.
#[derive(Clone, PartialEq, Debug)]
pub struct Lot {
    /// The program as it was when the swarm began.
    pub program: Program,
    /// What tells it from a changed one.
    pub fingerprint: serde_json::Value,
    /// What a search of the same kind has kept, to go on from there.
    pub kept: Option<Vec<u8>>,
}

/// What a piece of a search is, beside what it shares with a search that is saved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    /// Which one.
    pub name: String,
    /// The options of the search, and the program: the bytes of each word.
    pub words: Vec<Vec<u8>>,
}

impl Setting<'_> {
    /// The search, not begun.
    pub fn search(&self) -> Result<Box<dyn Search>, Failure> {
        match &self.of {
            Of::Split(into) => Ok(Box::new(Split::whole(*into))),
            Of::Again(piece, into) => {
                let split = Split::piece(piece, *into);
                Ok(Box::new(split.map_err(|why| Failure::environment(format!("the piece cannot be split: {why}")))?))
            }
            Of::Lot(lot) => match &lot.kept {
                Some(kept) => goes_on(self.config, kept)
                    .map_err(|why| Failure::environment(format!("what the task goes on from is damaged: {why}"))),
                None => search_of(self.config),
            },
            Of::Whole | Of::Piece(_) => search_of(self.config),
        }
    }

    /// Takes the program as it was when the swarm began.
    ///
    /// # Errors
    /// It has changed since.
    pub fn take_lot(&mut self) -> Result<(), Failure> {
        let Of::Lot(lot) = &self.of else { return Ok(()) };
        let program = &mut self.spec.program;
        if (&program.exe, &program.argv, &program.cwd) != (&lot.program.exe, &lot.program.argv, &lot.program.cwd) {
            return Err(Failure::environment("the swarm is of another program, or of one in another directory"));
        }
        if self.identity != lot.fingerprint {
            return Err(Failure::environment(
                "the program has changed since the swarm began: begin another one, in another directory",
            ));
        }
        // Addresses depend on the environment, and names on addresses.
        program.env.clone_from(&lot.program.env);
        self.spec.orders = true;
        Ok(())
    }

    /// The piece that is explored, if one is.
    pub fn piece(&self) -> Option<&Piece> {
        match &self.of {
            Of::Piece(piece) => Some(piece),
            _ => None,
        }
    }

    /// The time is over.
    pub fn is_time_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Where the program's own output goes.
pub fn output_file(path: Option<&Path>) -> io::Result<File> {
    match path {
        Some(path) => files::output(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
        // A duplicate shares its offset with vsrun's own messages.
        None => io::stderr().as_fd().try_clone_to_owned().map(File::from),
    }
}

/// Transitions after which executions are cut, and those without progress after which they are; 0: whatever they do not make.
fn lengths(config: &Config) -> (u64, u64) {
    let (usual, most) = match config.search {
        SearchKind::Once => (0, u64::MAX),
        kind if kind.draws_lots() => (RANDOM_IDLE, RANDOM_IDLE * LONGER),
        _ => (DEFAULT_IDLE, DEFAULT_IDLE * LONGER),
    };
    match (config.bounds.depth, config.bounds.idle) {
        // What was asked for holds, whatever the execution does.
        (Some(depth), idle) => (depth, idle.unwrap_or(0)),
        (None, Some(idle)) => (most.max(idle), idle),
        (None, None) => (most, usual),
    }
}

/// What a configuration says is run, and the file that was asked for; the standard input is left open.
pub(super) fn spec_of(config: &Config) -> Result<(Spec, PathBuf), Failure> {
    let cwd = surroundings::cwd().map_err(|e| Failure::environment(format!("the current directory: {e}")))?;
    let path = std::env::var_os("PATH");
    let (program, args) = config.program.split_first().ok_or_else(|| Failure::environment("no program given"))?;
    let launch = binary::resolve(program, args, &cwd, path.as_deref())
        .map_err(|refusal| Failure::environment(refusal.message()))?;
    let client = |words: &Words| {
        let (program, args) = words.0.split_first().ok_or_else(|| Failure::environment("--with without a program"))?;
        let found = binary::resolve(program, args, &cwd, path.as_deref())
            .map_err(|refusal| Failure::environment(format!("--with: {}", refusal.message())))?;
        Ok(Client { exe: found.exe.into_os_string(), argv: found.argv })
    };
    let with = config.with.iter().map(client).collect::<Result<Vec<_>, Failure>>()?;
    let (depth, idle) = lengths(config);
    let script = if launch.program == launch.exe { OsString::new() } else { launch.program.clone().into_os_string() };
    let program = Program {
        script,
        exe: launch.exe.into_os_string(),
        argv: launch.argv,
        cwd: cwd.clone().into_os_string(),
        env: surroundings::environment(),
    };
    let options = Options {
        timeouts_any: config.timeouts == Timeouts::Any,
        store_buffers: config.memory_model() == MemoryModel::Tso,
        inject: config.inject.iter().fold(0, |all, bit| all | bit),
        uncontrolled: config.kinds_let_through(),
        allow_misuse: config.allow_misuse,
        livelock: config.livelock.unwrap_or(0),
        fail_on_exit: config.fail_on_exit,
        real_files: !config.private_files(),
        with,
        clients_wait: config.clients == ClientsStart::Listening,
        clients_for: awaited(&config.clients, &cwd)?,
        restarts: config.restart.map_or(0, |_| config.restarts),
        restart_always: config.restart == Some(Restart::Always),
        stop_signal: config.stop_signal.unwrap_or(0),
        divergence_timeout_ms: config.divergence_timeout.as_millis() as u64,
        max_depth: config.bounds.depth,
        timeless: config.search == SearchKind::Stateful,
        loops: None,
        max_idle: config.bounds.idle,
        seed: config.seed,
        stdin: String::new(),
        tosses: config.toss.clone(),
        predicates: annotated(config)?.predicates,
        quarantine: config.quarantine(),
        cpu: Some(
            cpu::here(config.cpu == CpuName::Baseline)
                .map_err(|why| Failure::environment(format!("unsupported: {why}")))?,
        ),
        watches: false,
        watched: false,
    };
    let spec = Spec {
        program,
        options,
        max_depth: depth,
        max_idle: idle,
        memory: u64::MAX,
        guards: config.guard_arena,
        objects: Arc::default(),
        watch: watch_of(config, &cwd),
        flaws: config.race().flaws(),
        merges: !config.race().flaws().any(),
        own_pages: false,
        tells_names: false,
        checkpoint: config.checkpoint,
        marks: config.marks,
        marks_memory: 0,
        hasty: false,
        points: config.watch.clone(),
        orders: false,
        pieces: config.states == Some(StatesAsked::Why),
    };
    Ok((spec, launch.program))
}

/// What clients wait for beside sockets.
fn awaited(clients: &ClientsStart, cwd: &Path) -> Result<Option<Awaited>, Failure> {
    let path = match clients {
        ClientsStart::AtOnce | ClientsStart::Listening => return Ok(None),
        ClientsStart::Output(text) => return Ok(Some(Awaited::Output(text.clone()))),
        ClientsStart::File(path) => path,
    };
    let whole = without_links(&cwd.join(path)).map(PathBuf::into_os_string);
    let whole = whole.ok_or_else(|| wrong_file(path, "names no file in a directory"))?;
    match whole.len() < MAX_AWAITED_TEXT {
        true => Ok(Some(Awaited::File(whole))),
        false => Err(wrong_file(path, &format!("is longer than {} bytes, as an absolute path", MAX_AWAITED_TEXT - 1))),
    }
}

fn wrong_file(path: &OsStr, what: &str) -> Failure {
    Failure::environment(format!("--clients file:{}: it {what}", path.to_string_lossy()))
}

/// An absolute path without symbolic links on the way to its last name, as far as there is something now. `None`: it has no last name.
fn without_links(path: &Path) -> Option<PathBuf> {
    let last = path.components().next_back().filter(|last| matches!(last, Component::Normal(_)))?;
    let mut way = PathBuf::from("/");
    for part in path.parent()?.components() {
        match part {
            Component::Normal(name) => {
                way.push(name);
                way = way.canonicalize().unwrap_or(way);
            }
            Component::ParentDir => drop(way.pop()),
            _ => {}
        }
    }
    Some(way.join(last))
}

/// How memory is watched. To tell whether accesses are ordered, those to the stack that a thread works on are among them: others may
/// have been given what lies there.
fn watch_of(config: &Config, cwd: &Path) -> Option<WatchMemory> {
    let explores = config.race().watches();
    let log = config.watch_log.as_ref().map(|log| cwd.join(log));
    let choice = if explores { EXPLORED } else { Choice::default() };
    let by_step = config.search == SearchKind::Composed;
    (explores || log.is_some()).then(|| WatchMemory { log, choice, by_step, ..WatchMemory::default() })
}

/// Where memory turns out to be an object each use counts, not only the first in a transition.
const EXPLORED: Choice = Choice { stack: true, skip_repeated: false };

/// The same for a scenario, if its memory was watched when it was found.
pub(super) fn watch_for(scenario: &Scenario) -> Option<WatchMemory> {
    let watched = scenario.options.watched || scenario.is_about_memory();
    watched.then(|| WatchMemory { choice: EXPLORED, ..WatchMemory::default() })
}

/// The program of a configuration at its root, with its memory watched.
///
/// # Errors
/// It does not get there.
pub fn start_watched(config: &Config, watch: WatchMemory) -> Result<Worker, Failure> {
    let (mut spec, _) = spec_of(config)?;
    spec.memory = memory_of_each(None, 1);
    spec.watch = Some(watch);
    Ok(Worker::start(spec, Input::null()?, None)?)
}

/// Divides memory among so many workers.
pub(super) fn divide_memory(spec: &mut Spec, config: &Config, workers: usize) {
    spec.memory = memory_of_each(config.memory_size(), workers);
    spec.marks_memory = config.checkpoint_memory.unwrap_or_else(|| room::free() / 4) / workers.max(1) as u64;
}

/// Bytes that the processes of an execution may use: `asked`, or what each of that many workers may of what is free.
pub(super) fn memory_of_each(asked: Option<u64>, workers: usize) -> u64 {
    asked.unwrap_or_else(|| room::free() / 4 * 3 / workers.max(1) as u64)
}

/// What tells a changed program: the file that is executed and, for a script, the script.
pub(super) fn identity_of(exe: &Path, program: &Path, with: &[Client]) -> Result<serde_json::Value, Failure> {
    let of = |path: &Path| BinaryId::of(path).map_err(|e| Failure::environment(format!("{}: {e}", path.display())));
    let mut all = vec![of(exe)?];
    if exe != program {
        all.push(of(program)?);
    }
    for client in with {
        all.push(of(Path::new(&client.exe))?);
    }
    serde_json::to_value(all).map_err(|e| Failure::own(format!("vsrun bug: {e}")))
}

/// A search that goes on from what another one of its kind has kept.
fn goes_on(config: &Config, kept: &[u8]) -> Result<Box<dyn Search>, String> {
    match config.search {
        SearchKind::Novel => Ok(Box::new(Novel::after(config.seed, kept)?)),
        SearchKind::Rff => Ok(Box::new(Rff::after(config.seed, kept)?)),
        kind => Err(format!("nothing is kept of {}", kind.name())),
    }
}

/// The search that was asked for, not begun.
fn search_of(config: &Config) -> Result<Box<dyn Search>, Failure> {
    match config.search {
        SearchKind::Once => Ok(Box::<Once>::default()),
        SearchKind::Pct => Ok(Box::new(Pct::new(config.seed, config.pct_depth, config.pct_fair))),
        SearchKind::Bounded(Bound::Preemptions(k)) => Ok(Box::new(BoundedReduction::new(k))),
        SearchKind::Bounded(bound) => Ok(Box::new(Bounded::new(bound))),
        SearchKind::Transactions if config.refine == Some(Refine::Incremental) => {
            Ok(Box::new(Transactions::new().incremental()))
        }
        kind => search::by_name(kind.name(), config.seed)
            .ok_or_else(|| Failure::own(format!("vsrun bug: no search {}", kind.name()))),
    }
}

/// What tells a search that its time is over, or that vsrun is asked to end.
pub(super) fn watch(until: Option<Instant>) -> Watch {
    Watch::new(move || tracee::interrupted() || until.is_some_and(|until| Instant::now() >= until))
}

/// The search that is over after one execution with the default policy (`--once`).
#[derive(Default)]
pub(super) struct Once {
    given: bool,
    transitions: u64,
    choices: bool,
}

impl Search for Once {
    fn next(&mut self) -> Option<Schedule> {
        (!std::mem::replace(&mut self.given, true)).then(|| Schedule { blind: true, ..Schedule::default() })
    }
    fn done(&mut self, _ticket: u64, trace: &Trace) {
        self.transitions = trace.steps.len() as u64 + trace.unrecorded;
        self.choices = self.transitions > 0 || matches!(trace.end, End::DEPTH | End::ROOM);
    }
    fn exhaustive(&self) -> bool {
        !self.choices
    }
    fn limit(&self) -> Option<Reason> {
        Some(Reason::Once)
    }
    fn transitions(&self) -> u64 {
        self.transitions
    }
}
