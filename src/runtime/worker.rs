//! A worker: one world on one CPU. It brings the program to its root and runs executions forked from there, untraced;
//! with a tracer from the start when something is to be looked at.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::ptrace::Options;
use nix::sys::signal::{kill, Signal as NixSignal};
use nix::unistd::Pid;

use vsrun_model::arena::{
    Command, Mode, Plan, ARENA_FD, GUARD_FD, MAX_PATH, MAX_SYSCALLS, POOL_FD, POOL_SIZE, RANDOM_FD,
};
use vsrun_model::{End, ProcState};

use super::checkpoint::{memory_file, ArenaMap, RootState};
use super::counter;
use super::session::{self, Input, Output, PrivateDir};
use super::tracee::{self, wait_any, Event, LaunchError, LaunchSpec, Reason, Signal, Stopped, Ticks, Waited};
use crate::scenario::Client;
use crate::schedule::Schedule;
use crate::sharing::Objects;
use crate::trace::Trace;

/// The sixteen bytes of AT_RANDOM.
const AT_RANDOM: [u8; 16] = *b"vsrun\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b";
/// How often a world that runs is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Without CPU time and without moving for so long, a world sits in a system call.
const SITS: Duration = Duration::from_millis(700);
/// How often the children are listed to find those that were forked meanwhile.
const LISTINGS: usize = 100;
/// So many times the CPU time of a divergence may be spent on operations on objects of the thread's own, which are no
/// visible ones: a loop over these alone never comes back to the scheduler.
const OWN_OBJECTS: u32 = 10;
/// Wall-clock time that a program may take to reach main.
const ROOT_LIMIT: Duration = Duration::from_secs(60);

/// What is run and how.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file to execute.
    pub exe: PathBuf,
    /// Its arguments, the name first.
    pub argv: Vec<OsString>,
    /// Its environment.
    pub env: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Timeouts fire whenever they could.
    pub timeouts_any: bool,
    /// Faults that may strike, bits of [`vsrun_model::inject`].
    pub inject: u32,
    /// Misuse does what glibc does.
    pub allow_misuse: bool,
    /// States in a row without anything enabled; 0 = off.
    pub livelock: u32,
    /// An exit status other than 0 is a bug.
    pub fail_on_exit: bool,
    /// What the program writes to files goes to a private layer that each execution starts without.
    pub private_files: bool,
    /// Further root processes.
    pub with: Vec<Client>,
    /// Signal for what is left over when nothing but peers that do not come is waited for; 0: none.
    pub stop_signal: i32,
    /// CPU time without a visible operation that is a divergence.
    pub divergence_timeout: Duration,
    /// Transitions after which executions are cut.
    pub max_depth: u64,
    /// What is known of the sharing of objects.
    pub objects: Arc<Objects>,
}

/// Why the program did not get to its root.
#[derive(Debug)]
pub enum StartError {
    /// Something around the program could not be set up.
    Environment(String),
    /// The program, or vsrun's library in it, said why.
    Refused(String),
    /// vsrun is at fault.
    Bug(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Environment(text) | StartError::Refused(text) => f.write_str(text),
            StartError::Bug(text) => write!(f, "vsrun bug: {text}"),
        }
    }
}

impl From<io::Error> for StartError {
    fn from(e: io::Error) -> StartError {
        StartError::Environment(e.to_string())
    }
}

/// How an execution came to its end, as far as the supervisor saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The model says how (`Trace::end`).
    Modelled,
    /// A fatal signal (number) in the process with that index.
    Crash {
        /// Signal number.
        signal: i32,
        /// Index of the process.
        process: u32,
    },
    /// CPU time without a visible operation.
    Divergence,
    /// The world sits in a system call that went to the kernel: number and arguments.
    Sits {
        /// Thread index.
        thread: u32,
        /// Number and arguments.
        call: [u64; 7],
    },
    /// A process ended without the model knowing, with this exit status.
    Died(i32),
    /// vsrun was asked to end.
    Interrupted,
}

/// What an execution did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The trace.
    pub trace: Trace,
    /// How it ended.
    pub ending: Ending,
}

/// A program at its root.
pub struct Worker {
    /// The arena.
    pub arena: ArenaMap,
    spec: Spec,
    root: Pid,
    state: Box<RootState>,
    pool: OwnedFd,
    random: OwnedFd,
    /// Where the program's output goes while executions are explored.
    pub output: Output,
    input: Input,
    dir: PrivateDir,
    /// Ends waits every [`LOOK`].
    _ticks: Ticks,
    /// What ends the execution that is run, besides a request to end vsrun.
    stop: Arc<AtomicBool>,
    /// Calls that went to the kernel before the root.
    passed_before: [u32; MAX_SYSCALLS],
    /// Executions that the root has been asked to fork.
    commands: u32,
    /// Real pids of the execution's processes that are not reaped.
    alive: BTreeSet<i32>,
    /// Where the program's output is passed on while an execution that is not traced runs.
    echo: Option<File>,
    /// How long a `Sits` verdict takes.
    pub patience: Duration,
}

/// What `direct` replay needs to be kept open across exec.
pub struct DirectParts {
    /// How to start the program.
    pub launch: LaunchSpec,
    /// Kept for its descriptors.
    pub keep: Vec<OwnedFd>,
    /// The arena, set up.
    pub arena: ArenaMap,
    /// The directory of the shim.
    pub dir: PrivateDir,
}

fn path_bytes(dir: &PrivateDir) -> Result<[u8; MAX_PATH], StartError> {
    use std::os::unix::ffi::OsStrExt;
    let shim = dir.shim();
    let bytes = shim.as_os_str().as_bytes();
    let mut path = [0; MAX_PATH];
    if bytes.len() >= MAX_PATH {
        return Err(StartError::Environment(format!("the path {} is too long", shim.display())));
    }
    path[..bytes.len()].copy_from_slice(bytes);
    Ok(path)
}

fn set_options(arena: &mut ArenaMap, spec: &Spec, dir: &PrivateDir, mode: Mode) -> Result<(), StartError> {
    arena.control.shim_path = path_bytes(dir)?;
    arena.control.mode = mode;
    arena.control.vsrun_pid = if mode == Mode::ROOT { std::process::id() as i32 } else { 0 };
    arena.world.timeouts_any = spec.timeouts_any;
    arena.world.inject = spec.inject;
    arena.world.allow_misuse = spec.allow_misuse;
    arena.world.livelock = spec.livelock;
    arena.files.private = u32::from(spec.private_files);
    set_clients(arena, spec)?;
    spec.objects.write(arena).map_err(|e| StartError::Environment(e.into()))
}

fn set_clients(arena: &mut ArenaMap, spec: &Spec) -> Result<(), StartError> {
    use std::os::unix::ffi::OsStrExt;
    let closing = &mut arena.closing;
    let mut bytes = Vec::new();
    for client in &spec.with {
        bytes.extend_from_slice(client.exe.as_bytes());
        bytes.extend_from_slice(&[0, client.argv.len().min(128) as u8]);
        for arg in &client.argv {
            bytes.extend_from_slice(arg.as_bytes());
            bytes.push(0);
        }
    }
    if bytes.len() > closing.commands.len() || spec.with.iter().any(|client| client.argv.len() > 128) {
        return Err(StartError::Environment("the commands of --with are too long".into()));
    }
    closing.commands[..bytes.len()].copy_from_slice(&bytes);
    closing.len = bytes.len() as u32;
    closing.clients = spec.with.len() as u32;
    closing.stop_signal = spec.stop_signal as u32;
    Ok(())
}

fn launch_spec(spec: &Spec, dir: &PrivateDir, stdio: [i32; 3], fds: [i32; 3], cpu: Option<usize>) -> LaunchSpec {
    LaunchSpec {
        exe: spec.exe.clone(),
        argv: spec.argv.clone(),
        envp: session::with_preload(&spec.env, &dir.shim()),
        cwd: spec.cwd.clone(),
        stdio,
        inherit: vec![(fds[0], ARENA_FD), (fds[1], POOL_FD), (fds[2], RANDOM_FD)],
        cpu,
    }
}

/// The CPUs that the calling thread may use, in an order that begins with another one for another run of vsrun (most
/// often), so that two runs at a time do not share one while another is idle. A worker and its world share one.
pub fn cpus() -> Vec<usize> {
    let Ok(set) = nix::sched::sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let mut allowed: Vec<_> =
        (0..nix::sched::CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect();
    let first = std::process::id() as usize % allowed.len().max(1);
    allowed.rotate_left(first);
    allowed
}

fn pin(cpu: usize) {
    let mut set = nix::sched::CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = nix::sched::sched_setaffinity(Pid::from_raw(0), &set);
    }
}

impl Worker {
    /// The process that stands at the root.
    pub fn root_pid(&self) -> i32 {
        self.root.as_raw()
    }

    /// Starts the program and brings it to its root. It prints into memory; with `echo`, that is passed on there while
    /// an execution runs.
    pub fn start(spec: Spec, input: Input, echo: Option<File>) -> Result<Worker, StartError> {
        Worker::start_on(cpus().first().copied(), Arc::default(), spec, input, echo)
    }

    /// The same on that CPU; `stop`, once set, ends the execution that is run. The world belongs to the calling thread,
    /// and ends with it.
    pub fn start_on(
        cpu: Option<usize>,
        stop: Arc<AtomicBool>,
        spec: Spec,
        input: Input,
        echo: Option<File>,
    ) -> Result<Worker, StartError> {
        tracee::catch_requests()?;
        let ticks = Ticks::start(LOOK)?;
        let dir = PrivateDir::create(spec.inject)?;
        let mut arena = ArenaMap::shared()?;
        set_options(&mut arena, &spec, &dir, Mode::ROOT)?;
        let pool = memory_file(c"vsrun-pool", POOL_SIZE)?;
        let random = session::random_file()?;
        let output = Output::create()?;
        if let Some(cpu) = cpu {
            pin(cpu);
        }
        let out = output.fd();
        let arena_fd = arena.fd().ok_or_else(|| StartError::Bug("the arena has no descriptor".into()))?;
        let fds = [arena_fd, pool.as_raw_fd(), random.as_raw_fd()];
        let launch = launch_spec(&spec, &dir, [input.fd(), out, out], fds, cpu);
        let root = tracee::launch(&launch).map_err(launch_error)?;
        let mut worker = Worker {
            root: root.pid(),
            state: RootState::take(&arena)?,
            arena,
            spec,
            pool,
            random,
            output,
            input,
            dir,
            _ticks: ticks,
            stop,
            passed_before: [0; MAX_SYSCALLS],
            commands: 0,
            alive: BTreeSet::new(),
            patience: SITS,
            echo,
        };
        worker.bring_to_root(root)?;
        Ok(worker)
    }

    /// Everything for an execution without a supervisor: the caller becomes the program by exec.
    pub fn direct(spec: &Spec, schedule: &Schedule, stdio: [i32; 3]) -> Result<DirectParts, StartError> {
        let dir = PrivateDir::create(spec.inject)?;
        let mut arena = ArenaMap::shared()?;
        set_options(&mut arena, spec, &dir, Mode::DIRECT)?;
        prepare(&mut arena, spec, schedule)?;
        let pool = memory_file(c"vsrun-pool", POOL_SIZE)?;
        let random = session::random_file()?;
        let arena_fd = arena.fd().ok_or_else(|| StartError::Bug("the arena has no descriptor".into()))?;
        let fds = [arena_fd, pool.as_raw_fd(), random.as_raw_fd()];
        let mut launch = launch_spec(spec, &dir, stdio, fds, cpus().first().copied());
        // The guard cleans up when the last process of the program has let go of its pipe.
        launch.inherit.extend(dir.guard_pipe().map(|pipe| (pipe, GUARD_FD)));
        Ok(DirectParts { launch, keep: vec![pool, random], arena, dir })
    }

    /// Lets the program run from its exec to the root.
    fn bring_to_root(&mut self, mut root: Stopped) -> Result<(), StartError> {
        tracee::fix_auxv(&mut root, AT_RANDOM).map_err(|e| StartError::Bug(format!("{e:?}")))?;
        let _running = root.resume(None).map_err(|e| StartError::Bug(format!("{e}")))?;
        let since = Instant::now();
        // Each trap of the program's start stops it, and where there is one there are often more.
        const SHORT: Duration = Duration::from_micros(10);
        let mut pause = SHORT;
        loop {
            match wait_any(false).map_err(|e| StartError::Bug(format!("{e}")))? {
                Waited::Changed(pid, status) => {
                    let event = Event::decode(pid, status).map_err(|e| StartError::Bug(format!("{e}")))?;
                    self.before_root(event)?;
                    pause = SHORT;
                }
                Waited::NoChildren => return Err(self.died_early("it ended")),
                _ if self.arena.root_signs().0 > 0 => break,
                _ => {}
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(1));
            if since.elapsed() > ROOT_LIMIT {
                return Err(StartError::Refused("the program did not reach main within a minute".into()));
            }
            if self.is_to_stop() {
                return Err(StartError::Refused("interrupted before the program reached main".into()));
            }
        }
        self.state = RootState::take(&self.arena)?;
        self.passed_before = self.arena.control.passed;
        Ok(())
    }

    /// A request to end has come, or there is no use in going on.
    fn is_to_stop(&self) -> bool {
        tracee::interrupted() || self.stop.load(Ordering::Relaxed)
    }

    fn before_root(&mut self, event: Event) -> Result<(), StartError> {
        match event {
            Event::Stopped(stopped) => {
                let signal = match stopped.reason() {
                    Reason::Signal(signal) => Some(signal),
                    _ => None,
                };
                let fatal = signal.filter(|s| is_fault(s.number()) && !counter::is_reading(&stopped));
                if let Some(signal) = fatal {
                    return Err(self.died_early(&format!("it got {signal}")));
                }
                stopped.resume(signal).map(drop).map_err(|e| StartError::Bug(format!("{e}")))
            }
            Event::Exited { pid, code } if pid == self.root => {
                // The last process to end tells vsrun by ending, whatever its status; the status is the model's.
                let code = self.status().map_or(code, |status| status >> 8 & 0xff);
                Err(self.died_early(&format!("it exited with status {code}")))
            }
            Event::Signaled { pid, signal, .. } if pid == self.root => {
                Err(self.died_early(&format!("it was killed by {signal}")))
            }
            _ => Ok(()),
        }
    }

    fn died_early(&mut self, how: &str) -> StartError {
        let mut said = Vec::new();
        let _ = self.output.copy_to(&mut said);
        let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
        let world = &self.arena.world;
        if world.end == End::UNSUPPORTED || world.end == End::BUG {
            return StartError::Refused(format!("before main: {}", String::from_utf8_lossy(world.message())));
        }
        let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
        StartError::Refused(format!("the program ended before its main began: {how}{said}"))
    }

    /// Runs one execution, untraced.
    pub fn run(&mut self, schedule: &Schedule) -> io::Result<Outcome> {
        self.begin(schedule, false, Command::RUN)?;
        let ending = self.watch()?;
        self.pass_output_on()?;
        let trace = Trace::read(&self.arena);
        self.clean_up(&ending)?;
        Ok(Outcome { trace, ending })
    }

    /// Starts one execution under the tracer; the first process stands still. [`Worker::run_to_end`] goes on.
    pub fn start_traced(&mut self, schedule: &Schedule) -> io::Result<Stopped> {
        self.begin(schedule, true, Command::RUN_TRACED)?;
        loop {
            match wait_any(true).map_err(io::Error::other)? {
                Waited::Changed(pid, status) => match Event::decode(pid, status).map_err(io::Error::other)? {
                    Event::Stopped(mut stopped) if pid != self.root => {
                        let options = Options::PTRACE_O_EXITKILL
                            | Options::PTRACE_O_TRACEFORK
                            | Options::PTRACE_O_TRACECLONE
                            | Options::PTRACE_O_TRACEVFORK
                            | Options::PTRACE_O_TRACEEXEC;
                        stopped.set_options(options).map_err(io::Error::other)?;
                        self.alive.insert(pid.as_raw());
                        return Ok(stopped);
                    }
                    Event::Stopped(root) => resume_quietly(root),
                    _ => return Err(io::Error::other("the traced execution ended before it began")),
                },
                Waited::NoChildren => return Err(io::Error::other("the root is gone")),
                _ => {}
            }
        }
    }

    /// Lets a traced execution run until it ends in any way; what stands still then is given back to be looked at.
    pub fn run_to_end(&mut self, first: Stopped) -> io::Result<(Ending, Option<Stopped>)> {
        let mut clock = Clock::new(self.patience);
        // The SIGSTOP that it started with is not for the program.
        drop(first.resume(None).map_err(io::Error::other)?);
        let mut stopping: Option<Ending> = None;
        loop {
            let event = match wait_any(true).map_err(io::Error::other)? {
                Waited::Changed(pid, status) => Event::decode(pid, status).map_err(io::Error::other)?,
                Waited::NoChildren => return Ok((Ending::Died(-1), None)),
                _ => {
                    if self.is_to_stop() {
                        return Ok((Ending::Interrupted, None));
                    }
                    if stopping.is_none() {
                        stopping = self.look(&mut clock);
                        if let (Some(_), Some(pid)) = (&stopping, self.turn_holder()) {
                            let _ = kill(pid, NixSignal::SIGSTOP);
                        }
                    }
                    continue;
                }
            };
            if let Some(end) = self.traced_event(event, &mut stopping)? {
                return Ok(end);
            }
        }
    }

    fn traced_event(
        &mut self,
        event: Event,
        stopping: &mut Option<Ending>,
    ) -> io::Result<Option<(Ending, Option<Stopped>)>> {
        match event {
            Event::Stopped(stopped) if stopped.pid() == self.root => resume_quietly(stopped),
            Event::Stopped(stopped) => {
                let pid = stopped.pid();
                self.alive.insert(pid.as_raw());
                match stopped.reason() {
                    Reason::Signal(signal) if signal.number() == libc::SIGSTOP => {
                        if self.arena.progress().1 != 0 {
                            return Ok(Some((Ending::Modelled, Some(stopped))));
                        }
                        if let Some(ending) = stopping.take() {
                            return Ok(Some((ending, Some(stopped))));
                        }
                        resume_quietly(stopped);
                    }
                    Reason::Signal(signal) if self.is_fatal(&stopped, signal) => {
                        let process = self.process_of(pid.as_raw()).unwrap_or(0);
                        return Ok(Some((Ending::Crash { signal: signal.number(), process }, Some(stopped))));
                    }
                    Reason::Signal(signal) => drop(stopped.resume(Some(signal))),
                    Reason::Fork(child) | Reason::Vfork(child) | Reason::Clone(child) => {
                        self.alive.insert(child.as_raw());
                        resume_quietly(stopped);
                    }
                    _ => resume_quietly(stopped),
                }
            }
            Event::Exited { pid, code } => {
                self.alive.remove(&pid.as_raw());
                if let Some(ending) = self.after_death(pid, None, code) {
                    return Ok(Some((ending, None)));
                }
            }
            Event::Signaled { pid, signal, .. } => {
                self.alive.remove(&pid.as_raw());
                if let Some(ending) = self.after_death(pid, Some(signal), 0) {
                    return Ok(Some((ending, None)));
                }
            }
            Event::Dying(_) => {}
        }
        Ok(None)
    }

    /// True if `signal` is a fault that the program does not handle.
    fn is_fatal(&self, stopped: &Stopped, signal: Signal) -> bool {
        let world = &self.arena.world;
        let handled = self.process_of(stopped.pid().as_raw()).map_or(0, |p| world.procs[p].handled);
        if !is_fault(signal.number()) || handled & 1 << (signal.number() - 1) != 0 {
            return false;
        }
        let asked_for = world.threads.get(world.current).is_some_and(|t| t.fiber.tsc_faults);
        asked_for || !counter::is_reading(stopped)
    }

    /// Ends a traced execution.
    pub fn finish_traced(&mut self, ending: &Ending) -> io::Result<()> {
        self.clean_up(ending)
    }

    fn begin(&mut self, schedule: &Schedule, stop_at_end: bool, command: Command) -> io::Result<()> {
        self.state.restore(&mut self.arena);
        prepare(&mut self.arena, &self.spec, schedule).map_err(|e| io::Error::other(e.to_string()))?;
        self.arena.control.stop_at_end = u32::from(stop_at_end);
        self.output.clear()?;
        self.input.rewind()?;
        self.alive.clear();
        self.commands += 1;
        self.arena.command(command.0);
        Ok(())
    }

    /// Copies what the program has printed since the last time to where it is shown.
    fn pass_output_on(&mut self) -> io::Result<()> {
        match &mut self.echo {
            Some(echo) => self.output.pass_on(echo),
            None => Ok(()),
        }
    }

    /// Waits for the end of an untraced execution.
    fn watch(&mut self) -> io::Result<Ending> {
        let mut clock = Clock::new(self.patience);
        loop {
            match wait_any(true).map_err(io::Error::other)? {
                Waited::Changed(pid, status) if pid == self.root => {
                    match Event::decode(pid, status).map_err(io::Error::other)? {
                        Event::Stopped(stopped) => resume_quietly(stopped),
                        _ => return Err(io::Error::other("the root process is gone (was it killed from outside?)")),
                    }
                }
                Waited::Changed(pid, status) => {
                    let raw = status.raw();
                    if libc::WIFSTOPPED(raw) {
                        continue;
                    }
                    let signal = if libc::WIFSIGNALED(raw) { Signal::from_number(libc::WTERMSIG(raw)) } else { None };
                    if let Some(ending) = self.after_death(pid, signal, libc::WEXITSTATUS(raw)) {
                        return Ok(ending);
                    }
                }
                Waited::NoChildren => return Err(io::Error::other("the root process is gone")),
                _ => {
                    if self.is_to_stop() {
                        return Ok(Ending::Interrupted);
                    }
                    self.pass_output_on()?;
                    if let Some(ending) = self.look(&mut clock) {
                        return Ok(ending);
                    }
                }
            }
        }
    }

    /// What the end of a process of the execution means; `None`: the others go on.
    fn after_death(&mut self, pid: Pid, signal: Option<Signal>, code: i32) -> Option<Ending> {
        let process = self.process_of(pid.as_raw());
        if self.arena.world.end != End::RUNNING {
            return Some(Ending::Modelled);
        }
        let expected = process.is_some_and(|p| self.arena.world.procs[p].state != ProcState::LIVE);
        match (signal, process) {
            _ if expected => None,
            (Some(signal), Some(process)) => Some(Ending::Crash { signal: signal.number(), process }),
            (Some(signal), None) => Some(Ending::Died(128 + signal.number())),
            (None, _) => Some(Ending::Died(code)),
        }
    }

    fn process_of(&self, pid: i32) -> Option<u32> {
        let procs = self.arena.world.procs.as_slice();
        procs.iter().rposition(|p| p.own.real_pid == pid).map(|p| p as u32)
    }

    /// The process that has the turn.
    fn turn_holder(&self) -> Option<Pid> {
        let world = &self.arena.world;
        let thread = world.threads.get(world.current)?;
        let real = world.procs.get(thread.pid)?.own.real_pid;
        (real > 0).then(|| Pid::from_raw(real))
    }

    /// Looks at a world that has run for a while: does it move, does it use CPU time?
    fn look(&self, clock: &mut Clock) -> Option<Ending> {
        let pid = self.turn_holder()?;
        let cpu = cpu_time(pid)?;
        let now = Instant::now();
        let ops = self.arena.progress().0;
        let visible = self.arena.visible_ops();
        let other = pid != clock.pid;
        if other || visible > clock.visible {
            (clock.visible, clock.visible_cpu) = (visible, cpu);
        } else if cpu.saturating_sub(clock.visible_cpu) > self.spec.divergence_timeout * OWN_OBJECTS {
            return Some(Ending::Divergence);
        }
        if other || ops != clock.ops {
            (clock.ops, clock.pid) = (ops, pid);
            (clock.moved_cpu, clock.last_cpu, clock.busy) = (cpu, cpu, now);
            return None;
        }
        if cpu > clock.last_cpu + Duration::from_millis(1) {
            (clock.last_cpu, clock.busy) = (cpu, now);
        }
        if cpu.saturating_sub(clock.moved_cpu) > self.spec.divergence_timeout {
            return Some(Ending::Divergence);
        }
        if now.duration_since(clock.busy) < clock.patience {
            return None;
        }
        let current = self.arena.world.current;
        let call = self.arena.world.threads.get(current)?.fiber.in_call;
        // A stopped or swapped-out machine is given ten seconds before vsrun is blamed.
        let lost = now.duration_since(clock.busy) > Duration::from_secs(10);
        (call[0] != 0 || lost).then_some(Ending::Sits { thread: current, call })
    }

    /// Waits until the root has forked the execution that it was asked for: one that is given up at once could come to life
    /// after its end otherwise, in the world of the next one.
    fn await_fork(&self) {
        const LIMIT: Duration = Duration::from_secs(10);
        let since = Instant::now();
        // It is ready once before the first, and again after each.
        while self.arena.root_signs().0 <= self.commands {
            if since.elapsed() > LIMIT || kill(self.root, None).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Kills what is left of the execution, collects it, and puts back what it changed outside its memory.
    fn clean_up(&mut self, ending: &Ending) -> io::Result<()> {
        for process in self.arena.world.procs.as_slice() {
            if process.own.real_pid > 0 && process.own.real_pid != self.root.as_raw() {
                self.alive.insert(process.own.real_pid);
            }
        }
        let rough = *ending != Ending::Modelled;
        if rough {
            self.await_fork();
            for child in children() {
                self.alive.insert(child);
            }
            self.alive.remove(&self.root.as_raw());
        }
        for pid in std::mem::take(&mut self.alive) {
            reap(pid, &self.dir);
        }
        // Those that are killed may have forked until then.
        if rough {
            self.reap_all();
        }
        if self.arena.control.pool_used > 0 {
            use nix::fcntl::{fallocate, FallocateFlags};
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            fallocate(self.pool.as_raw_fd(), flags, 0, POOL_SIZE as i64)?;
        }
        if self.arena.control.shm_used != 0 {
            self.dir.clear_shm()?;
        }
        if self.arena.files.used != 0 {
            self.dir.clear_files()?;
        }
        Ok(())
    }

    /// Kills and collects every child but the root and the guard.
    fn reap_all(&self) {
        loop {
            let spared = [Some(self.root.as_raw()), self.dir.guard_pid()];
            let left: Vec<i32> = children().into_iter().filter(|&c| !spared.contains(&Some(c))).collect();
            if left.is_empty() {
                return;
            }
            left.into_iter().for_each(|child| reap(child, &self.dir));
        }
    }

    /// The wait status of the first process in the execution last run, if it got to its end.
    pub fn status(&self) -> Option<i32> {
        (self.arena.control.status_known != 0).then_some(self.arena.control.status)
    }

    /// What the execution last run did with files and is not explored: sentences.
    pub fn files_left_out(&self) -> Vec<String> {
        let files = &self.arena.files;
        let name = |bytes: &[u8], len: u32| {
            let bytes = &bytes[..(len as usize).min(bytes.len())];
            (len > 0).then(|| String::from_utf8_lossy(bytes).escape_debug().to_string())
        };
        let shown = name(&files.shown, files.shown_len).map(|file| {
            format!("file {file} is written by one thread and used by another: their order is not explored")
        });
        let logged = name(&files.logged, files.logged_len).map(|file| {
            format!("file {file} is written by several threads and read by none: the order of what is in it is not explored")
        });
        shown.into_iter().chain(logged).collect()
    }

    /// Calls that went to the kernel since the root, by number.
    pub fn passed(&self) -> impl Iterator<Item = u32> + '_ {
        self.arena.control.passed.iter().zip(&self.passed_before).map(|(now, before)| now.saturating_sub(*before))
    }

    /// The same before the root.
    pub fn passed_before(&self) -> &[u32; MAX_SYSCALLS] {
        &self.passed_before
    }

    /// What is known of the sharing of objects from the next execution on.
    ///
    /// # Errors
    /// It is more than an arena has room for.
    pub fn use_objects(&mut self, objects: &Arc<Objects>) -> Result<(), StartError> {
        if !Arc::ptr_eq(&self.spec.objects, objects) {
            objects.write(&mut self.arena).map_err(|e| StartError::Environment(e.into()))?;
            self.spec.objects = Arc::clone(objects);
        }
        Ok(())
    }

    /// How the program's standard input is given.
    pub fn input_name(&self) -> &'static str {
        self.input.name()
    }

    /// Descriptor of the file behind /dev/urandom; kept for the life of the worker.
    pub fn random_fd(&self) -> i32 {
        self.random.as_raw_fd()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = kill(self.root, NixSignal::SIGKILL);
        let guard = self.dir.guard_pid();
        // What forks while it is listed has a child that is not in the list.
        for _ in 0..LISTINGS {
            let mut left = children();
            left.retain(|&child| Some(child) != guard);
            if left.is_empty() {
                break;
            }
            left.into_iter().for_each(|child| reap(child, &self.dir));
        }
    }
}

fn prepare(arena: &mut ArenaMap, spec: &Spec, schedule: &Schedule) -> Result<(), StartError> {
    let plan = Plan {
        policy: schedule.policy,
        seed: schedule.seed,
        pct_depth: schedule.pct_depth,
        pct_length: schedule.pct_length,
        max_depth: spec.max_depth,
        record: schedule.record,
        record_back: schedule.record_back,
        past_cycles: schedule.past_cycles,
        wake_by_effects: schedule.wake_by_effects,
        expected_effects: schedule.expected_effects,
        late_wake: schedule.late_wake,
        blind: schedule.blind,
        fail_on_exit: spec.fail_on_exit,
        unshared: spec.objects.unshared,
        ..Plan::default()
    };
    arena.prepare(plan, &schedule.prefix, &schedule.sleep).map_err(|e| StartError::Environment(e.into()))?;
    arena.expect(&schedule.expected);
    Ok(())
}

fn launch_error(e: LaunchError) -> StartError {
    StartError::Environment(format!("the program could not be started: {e}"))
}

fn is_fault(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGXCPU, SIGXFSZ};
    matches!(signal, SIGSEGV | SIGBUS | SIGFPE | SIGILL | SIGTRAP | SIGABRT | SIGXCPU | SIGXFSZ)
}

/// Lets a tracee go on; one that died meanwhile needs nothing.
fn resume_quietly(stopped: Stopped) {
    let signal = match stopped.reason() {
        Reason::Signal(signal) if signal.number() != libc::SIGSTOP => Some(signal),
        _ => None,
    };
    drop(stopped.resume(signal));
}

/// Kills and collects one child; pids of processes that are collected already are ignored. The guard is spared.
fn reap(pid: i32, dir: &PrivateDir) {
    if Some(pid) == dir.guard_pid() {
        return;
    }
    let pid = Pid::from_raw(pid);
    use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
    match waitpid(pid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
        Err(nix::errno::Errno::ECHILD) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return,
        _ => {}
    }
    let _ = kill(pid, NixSignal::SIGKILL);
    loop {
        match waitpid(pid, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return,
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Real pids of this thread's children.
fn children() -> Vec<i32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// CPU time of a process.
fn cpu_time(pid: Pid) -> Option<Duration> {
    let clock = nix::time::clock_getcpuclockid(pid).ok()?;
    let time = nix::time::clock_gettime(clock).ok()?;
    Some(Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32))
}

/// What was seen of a world's progress.
struct Clock {
    ops: u64,
    /// Visible operations, and the CPU time when there was a new one.
    visible: u64,
    visible_cpu: Duration,
    pid: Pid,
    moved_cpu: Duration,
    last_cpu: Duration,
    busy: Instant,
    patience: Duration,
}

impl Clock {
    fn new(patience: Duration) -> Clock {
        let zero = Duration::ZERO;
        let (ops, visible, pid, busy) = (u64::MAX, u64::MAX, Pid::from_raw(0), Instant::now());
        Clock { ops, visible, visible_cpu: zero, pid, moved_cpu: zero, last_cpu: zero, busy, patience }
    }
}
