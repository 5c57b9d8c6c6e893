//! What is run and how, and what it is started with: the arena as it begins, descriptors, the preloaded library.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use nix::sys::resource::{getrlimit, Resource};
use vsrun_model::arena::{guide_that_fits, Arena, Mode, Plan, ARENA_FD, MAX_PATH, POOL_FD, QUARANTINE, RANDOM_FD};

use vsrun_model::closing::{Awaits, MAX_AWAITED_TEXT};
use vsrun_model::watch::state;

use super::checkpoint::ArenaMap;
use super::cpu;
use super::session::{self, PrivateDir};
use super::tracee::LaunchSpec;
use super::watched::Watch;
use crate::config::{Checkpoint, Point};
use crate::objects::Objects;
use crate::race::Flaws;
use crate::scenario::{Awaited, Options, Program};
use crate::schedule::{Schedule, States};

/// For so many calls of each of its processes an execution that is looked at is guarded, see `Control::guarded`.
pub const LOOKED_AT_CALLS: u32 = 20_000;

/// For which calls of each process of an execution who writes to vsrun's memory faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Guarded {
    None,
    /// The first, and of those behind them ever fewer: other ones by each seed.
    Some(u32),
    /// The first so many.
    First(u32),
}

/// More starts of a program again than `--restarts` takes.
const MOST_RESTARTS: u32 = 16;

fn path_bytes(dir: &PrivateDir) -> Result<[u8; MAX_PATH], StartError> {
    let shim = dir.shim();
    let bytes = shim.as_os_str().as_bytes();
    let mut path = [0; MAX_PATH];
    if bytes.len() >= MAX_PATH {
        return Err(StartError::Environment(format!("the path {} is too long", shim.display())));
    }
    path[..bytes.len()].copy_from_slice(bytes);
    Ok(path)
}

pub(super) fn set_options(arena: &mut ArenaMap, spec: &Spec, dir: &PrivateDir, mode: Mode) -> Result<(), StartError> {
    arena.control.shim_path = path_bytes(dir)?;
    arena.control.mode = mode;
    arena.control.processes = getrlimit(Resource::RLIMIT_NPROC).map_or(u64::MAX, |(soft, _)| soft);
    arena.control.vsrun_pid = if mode == Mode::ROOT { std::process::id() as i32 } else { 0 };
    arena.control.watching.state = if spec.watch.is_some() && mode == Mode::ROOT { state::ASKED } else { state::OFF };
    arena.control.quarantine = spec.options.quarantine.unwrap_or(QUARANTINE);
    arena.control.baseline = spec.is_baseline().into();
    arena.control.store_buffers = u32::from(spec.options.store_buffers);
    arena.world.timeouts_any = spec.options.timeouts_any;
    arena.world.inject = spec.options.inject;
    arena.world.uncontrolled = spec.options.uncontrolled;
    arena.world.allow_misuse = spec.options.allow_misuse;
    arena.world.livelock = spec.options.livelock;
    arena.control.names_told = spec.tells_names.into();
    arena.files.private = u32::from(!spec.options.real_files);
    set_clients(arena, spec)?;
    spec.objects.write(arena).map_err(|e| StartError::Environment(e.into()))
}

fn set_clients(arena: &mut ArenaMap, spec: &Spec) -> Result<(), StartError> {
    let closing = &mut arena.closing;
    let again = (spec.options.restarts > 0).then_some((&spec.program.exe, &spec.program.argv));
    let clients = spec.options.with.iter().map(|client| (&client.exe, &client.argv));
    let mut bytes = Vec::new();
    for (exe, argv) in clients.chain(again) {
        bytes.extend_from_slice(exe.as_bytes());
        bytes.extend_from_slice(&[0, argv.len().min(128) as u8]);
        for arg in argv {
            bytes.extend_from_slice(arg.as_bytes());
            bytes.push(0);
        }
        if argv.len() > 128 {
            return Err(too_long());
        }
    }
    if bytes.len() > closing.commands.len() {
        return Err(too_long());
    }
    closing.commands[..bytes.len()].copy_from_slice(&bytes);
    closing.len = bytes.len() as u32;
    closing.clients = spec.options.with.len() as u32;
    closing.stop_signal = spec.options.stop_signal as u32;
    closing.restarts = spec.options.restarts;
    closing.always = spec.options.restart_always.into();
    let (awaits, what) = match &spec.options.clients_for {
        _ if spec.options.with.is_empty() => (Awaits::NOTHING, &b""[..]),
        Some(Awaited::File(path)) => (Awaits::FILE, path.as_bytes()),
        Some(Awaited::Output(text)) => (Awaits::OUTPUT, text.as_bytes()),
        None if spec.options.clients_wait => (Awaits::LISTENER, &b""[..]),
        None => (Awaits::NOTHING, &b""[..]),
    };
    closing.awaits = awaits;
    // From a scenario it may be anything.
    let wrong = matches!(awaits, Awaits::FILE | Awaits::OUTPUT) && what.is_empty() || what.len() >= MAX_AWAITED_TEXT;
    if wrong || spec.options.restarts > MOST_RESTARTS {
        return Err(StartError::Environment("what --clients waits for, or --restarts, is out of bounds".into()));
    }
    arena.world.awaited[..what.len()].copy_from_slice(what);
    arena.world.awaited[what.len()] = 0;
    arena.world.awaited_len = what.len() as u32;
    Ok(())
}

fn too_long() -> StartError {
    StartError::Environment("the commands of --with, or the one that --restart starts again, are too long".into())
}

pub(super) fn launch_spec(
    spec: &Spec,
    dir: &PrivateDir,
    stdio: [i32; 3],
    fds: [i32; 3],
    place: Option<usize>,
) -> LaunchSpec {
    let envp = session::with_preload(&spec.program.env, &dir.shim());
    let envp = if spec.is_baseline() { cpu::with_baseline(envp) } else { envp };
    LaunchSpec {
        exe: PathBuf::from(&spec.program.exe),
        argv: spec.program.argv.clone(),
        envp,
        cwd: PathBuf::from(&spec.program.cwd),
        stdio,
        inherit: vec![(fds[0], ARENA_FD), (fds[1], POOL_FD), (fds[2], RANDOM_FD)],
        cpu: place,
    }
}

/// Transitions after which an execution is cut.
fn depth_of(spec: &Spec, schedule: &Schedule) -> u64 {
    let prefix = schedule.ends.then_some(schedule.prefix.len() as u64);
    [prefix, schedule.depth, schedule.most].into_iter().flatten().fold(spec.max_depth, u64::min)
}

pub(super) fn plan_of(spec: &Spec, schedule: &Schedule) -> Plan {
    Plan {
        policy: schedule.policy,
        seed: schedule.seed,
        pct_depth: schedule.pct_depth,
        pct_length: schedule.pct_length,
        pct_fair: schedule.pct_fair,
        max_depth: depth_of(spec, schedule),
        max_idle: spec.max_idle,
        record: schedule.record || spec.watch.is_some(),
        // What happens before what is told by what was pending in all states.
        record_back: if spec.watch.is_some() { schedule.prefix.len() as u32 } else { schedule.record_back },
        watches: spec.watch.is_some(),
        merges: spec.merges,
        has_words: !spec.objects.words.is_empty(),
        reuses: spec.objects.reuses,
        own_pages: spec.own_pages,
        orders: spec.orders,
        // Of two uses of memory that come right before different circles close, an execution that ends there has one.
        past_cycles: schedule.past_cycles || spec.watch.is_some() && schedule.record,
        wake_by_effects: schedule.wake_by_effects,
        expected_effects: schedule.expected_effects,
        late_wake: schedule.late_wake,
        // What happens before what is told by the steps.
        blind: schedule.blind && spec.watch.is_none(),
        fail_on_exit: spec.options.fail_on_exit,
        unshared: spec.objects.unshared,
        prefix_len: schedule.prefix.len() as u32,
        guide_len: guide_that_fits(schedule.prefix.len(), schedule.guide.len()) as u32,
        timeless: spec.options.timeless,
        states: schedule.states != States::Off,
        pieces: spec.pieces && schedule.states != States::Off,
        timed: schedule.timed,
        untold: schedule.untold.map_or(0, |at| at.saturating_add(1)),
        loops: schedule.loops.map_or(0, |at| at.saturating_add(1)),
    }
}

/// What vsrun has written for the execution that is over, and nobody else writes, is as it was.
pub(super) fn is_intact(arena: &Arena, spec: &Spec, schedule: &Schedule) -> bool {
    let mode = arena.control.mode == Mode::ROOT && arena.control.vsrun_pid == std::process::id() as i32;
    let n = schedule.prefix.len();
    let plan = arena.plan == plan_of(spec, schedule) && arena.prefix.get(..n) == Some(&schedule.prefix[..]);
    arena.is_sealed() && mode && plan && spec.objects.stands_in(arena)
}

/// What seems to diverge while threads have pages of their own is run once more without these, so that is looked at sooner.
const OWN_PAGES: u32 = 8;
/// See [`Spec::hasty`].
const HASTY: u32 = 24;

pub(super) fn prepare(arena: &mut ArenaMap, spec: &Spec, schedule: &Schedule) -> Result<(), StartError> {
    let plan = plan_of(spec, schedule);
    arena.prepare(plan, &schedule.prefix, &schedule.sleep).map_err(|e| StartError::Environment(e.into()))?;
    arena.guide(&schedule.guide);
    arena.expect(&schedule.expected);
    arena.aim(&schedule.interest, &schedule.wishes);
    if schedule.states != States::Off {
        arena.visited.begin(schedule.ticket, schedule.states == States::Begin);
    }
    Ok(())
}

/// What is run and how.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program.
    pub program: Program,
    /// What executions depend on.
    pub options: Options,
    /// Transitions after which executions are cut.
    pub max_depth: u64,
    /// Transitions without progress after which they are; 0: they go on.
    pub max_idle: u64,
    /// Bytes of memory that the processes of an execution may use together.
    pub memory: u64,
    /// Every execution is guarded: who writes to vsrun's memory faults (`--guard-arena`).
    pub guards: bool,
    /// What is known of the sharing of objects.
    pub objects: Arc<Objects>,
    /// Memory is watched.
    pub watch: Option<Watch>,
    /// What of uses of memory is a bug.
    pub flaws: Flaws,
    /// See [`Plan::merges`]: not where uses of memory are reported, since which one is the first depends on their order.
    pub merges: bool,
    /// See [`Plan::own_pages`]. Set by the worker for each execution.
    pub own_pages: bool,
    /// A divergence is one sooner: it is asked for what the memory that is looked at turns out to be. Set by the worker.
    pub hasty: bool,
    /// The names of files that executions use are told, see [`Worker::names_told`](super::Worker::names_told).
    pub tells_names: bool,
    /// How executions come to where they begin.
    pub checkpoint: Checkpoint,
    /// A mark is made after so many transitions; 0: where it pays. For tests.
    pub marks: u64,
    /// Bytes of memory that the marks of the worker may take.
    pub marks_memory: u64,
    /// Variables of which each use is told.
    pub points: Vec<Point>,
    /// Which operations of different threads come one after the other is noted, see [`Worker::orders`](super::Worker::orders).
    pub orders: bool,
    /// What makes states differ is noted, see [`Worker::apart`](super::Worker::apart).
    pub pieces: bool,
}

impl Spec {
    /// What programs allocate and free has to be seen.
    pub fn sees_heap(&self) -> bool {
        self.options.inject & vsrun_model::inject::ENOMEM != 0 || self.watch.is_some()
    }

    /// The program sees the processor of [`vsrun_model::cpu`].
    pub fn is_baseline(&self) -> bool {
        self.options.cpu.as_ref().is_some_and(|cpu| cpu.baseline)
    }

    /// CPU time without a visible operation that is a divergence: what was asked for is that of the program itself, which takes longer while
    /// its memory is watched.
    pub fn divergence_timeout(&self) -> Duration {
        const WATCHED: u32 = 3;
        let timeout = Duration::from_millis(self.options.divergence_timeout_ms);
        let timeout = timeout * if self.watch.is_some() { WATCHED } else { 1 };
        match (self.own_pages, self.hasty) {
            (true, _) => timeout / OWN_PAGES,
            (false, true) => timeout / HASTY,
            (false, false) => timeout,
        }
    }
}

/// Why the program did not get to its root.
#[derive(Debug)]
pub enum StartError {
    /// Something around the program could not be set up.
    Environment(String),
    /// The program, or vsrun's library in it, said why.
    Refused(String),
    /// vsrun was asked to end before.
    Interrupted,
    /// vsrun is at fault.
    Bug(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Environment(text) | StartError::Refused(text) => f.write_str(text),
            StartError::Interrupted => f.write_str(
                "interrupted, or the time was over (--time), before the program reached main: nothing was explored",
            ),
            StartError::Bug(text) => write!(f, "vsrun bug: {text}"),
        }
    }
}

impl From<io::Error> for StartError {
    fn from(e: io::Error) -> StartError {
        StartError::Environment(e.to_string())
    }
}
