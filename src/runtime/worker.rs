//! A worker: one world on one CPU. It brings the program to its root and runs executions forked from there, untraced;
//! with a tracer from the start when something is to be looked at.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use vsrun_model::arena::{Command, Control, Mode, Pages, MAX_SYSCALLS, POOL_SIZE};
use vsrun_model::{End, Tid, Uid};

use super::apart::States;
use super::checkpoint::{memory_file, ArenaMap, RootState};
use super::halt::Halt;
use super::kept::{self, Kept};
use super::look;
use super::outcome::Outcome;
use super::own_pages::OwnPages;
use super::processes::{children, cpus_for, is_answered, is_fault, is_reading, pin, reap};
use super::session::{self, PrivateDir};
use super::setup::{launch_spec, set_options, Spec, StartError};
use super::stood::GoingBack;
use super::streams::{Input, Output};
use super::told::Told;
use super::tossed::Tossed;
use super::tracee::{self, send, wait_any, Event, LaunchError, Reason, Stopped, Ticks, Waited};
use super::watched::Watched;
use super::watchpoints::{pieces, Watchlist, Watchpoints};
use crate::binary::preflight::is_secure_exec;
use crate::binary::{Modules, SymbolCache};
use crate::finding::{Apart, Finding};
use crate::objects::{Objects, Shown};
use crate::search::{answered, Answers};

/// The end of the sentence about a file that nobody has read yet.
pub const ONLY_WRITTEN: &str =
    " is written by several threads and read by none: the order of what is in it is not explored";

/// The sixteen bytes of AT_RANDOM.
const AT_RANDOM: [u8; 16] = *b"vsrun\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b";
/// How often a world that runs is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How often the children are listed to find those that were forked meanwhile.
const LISTINGS: usize = 100;
/// Wall-clock time that a program may take to reach main.
const ROOT_LIMIT: Duration = Duration::from_secs(60);

/// What a worker knows of the pages that its executions use.
pub(super) struct KnownPages {
    pub(super) pages: Box<Pages>,
    /// Untraced executions so far.
    pub(super) runs: u32,
    /// The last one has told what it uses.
    pub(super) told: bool,
}

/// A program at its root.
pub struct Worker {
    /// The arena.
    pub(super) arena: ArenaMap,
    pub(super) spec: Spec,
    pub(super) root: Pid,
    pub(super) state: Box<RootState>,
    /// What executions share with the root.
    pub(super) kept: Kept,
    pub(super) pool: File,
    /// The file behind /dev/urandom, for the life of the worker.
    _random: OwnedFd,
    /// Where the program's output goes while executions are explored.
    pub output: Output,
    pub(super) input: Input,
    pub(super) dir: PrivateDir,
    /// Ends waits every [`LOOK`].
    _ticks: Ticks,
    /// What ends the execution that is run, besides a request to end vsrun.
    halt: Arc<Halt>,
    /// Until when this worker may go on, whatever the time for all.
    grace: Option<Instant>,
    /// Calls that went to the kernel before the root.
    passed_before: [u32; MAX_SYSCALLS],
    /// And since the root in worlds that this one has followed.
    passed_earlier: Vec<u32>,
    /// What stood in the arena for the root when it stood there first.
    pub(super) control: Control,
    /// What is known of the pages that executions use.
    pub(super) known: KnownPages,
    /// Executions that the root has been asked to fork.
    pub(super) commands: u32,
    /// Untraced executions that were run.
    pub(super) runs: u32,
    /// Real pids of the execution's processes that are not reaped.
    pub(super) alive: BTreeSet<i32>,
    /// Where the program's output is passed on while an execution that is not traced runs.
    pub(super) echo: Option<File>,
    /// How memory is watched.
    pub(super) watched: Option<Watched>,
    /// The file with patches that a process of the program makes itself, see [`Worker::patches_of`].
    pub(super) patches: Option<Vec<u8>>,
    /// Functions that return a choice.
    pub(super) tossed: Vec<Tossed>,
    /// Variables of which each use is told.
    pub(super) points: Watchpoints,
    /// What was seen of them in the execution last run.
    pub(super) list: Watchlist,
    /// What makes states differ, where that is asked for.
    pub(super) states: Option<States>,
    /// What signals have answered in the executions before.
    pub(super) answers: Answers,
    /// The process that goes back from the end of an execution to its first choice.
    pub(super) back: GoingBack,
    /// Pages of memory that threads have for themselves.
    pub(super) own: OwnPages,
    /// From where the transitions of the execution that is looked at are made.
    pub(super) told: Told,
    /// See [`Worker::guard_looks`].
    pub(super) looks_unguarded: bool,
    cpu: Option<usize>,
    /// When the execution that is run is broken off, if it is not over by then.
    until: Option<Instant>,
    /// Its processes are gone, and another worker has its place.
    is_over: bool,
}

impl Worker {
    /// The process that stands at the root.
    pub fn root_pid(&self) -> i32 {
        self.root.as_raw()
    }

    /// Starts the program and brings it to its root. It prints into memory; with `echo`, that is passed on there while
    /// an execution runs.
    pub fn start(spec: Spec, input: Input, echo: Option<File>) -> Result<Worker, StartError> {
        Worker::start_on(cpus_for(1).first().copied(), Arc::default(), spec, input, echo)
    }

    /// The same on that CPU; `halt`, once due, ends the execution that is run. The world belongs to the calling thread,
    /// and ends with it.
    pub fn start_on(
        cpu: Option<usize>,
        halt: Arc<Halt>,
        spec: Spec,
        input: Input,
        echo: Option<File>,
    ) -> Result<Worker, StartError> {
        tracee::catch_requests()?;
        let ticks = Ticks::start(LOOK)?;
        let dir = PrivateDir::create(spec.sees_heap())?;
        let mut arena = ArenaMap::shared()?;
        set_options(&mut arena, &spec, &dir, Mode::ROOT)?;
        let pool = File::from(memory_file(c"vsrun-pool", POOL_SIZE)?);
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
        let states = spec.pieces.then(States::default);
        let mut worker = Worker {
            root: root.pid(),
            state: RootState::take(&arena)?,
            kept: Kept::default(),
            spec,
            pool,
            _random: random,
            output,
            input,
            dir,
            _ticks: ticks,
            halt,
            grace: None,
            passed_before: [0; MAX_SYSCALLS],
            passed_earlier: vec![0; MAX_SYSCALLS],
            control: arena.control,
            arena,
            known: KnownPages { pages: Box::new(Pages::NONE), runs: 0, told: false },
            commands: 0,
            runs: 0,
            alive: BTreeSet::new(),
            echo,
            patches: None,
            watched: None,
            tossed: Vec::new(),
            points: Watchpoints::default(),
            list: Watchlist::default(),
            states,
            told: Told::default(),
            own: OwnPages::default(),
            answers: Answers::default(),
            back: GoingBack::default(),
            looks_unguarded: false,
            cpu,
            until: None,
            is_over: false,
        };
        worker.bring_to_root(root)?;
        Ok(worker)
    }

    /// Lets the program run from its exec to the root.
    fn bring_to_root(&mut self, mut root: Stopped) -> Result<(), StartError> {
        if is_secure_exec(&std::fs::read(format!("/proc/{}/auxv", root.pid()))?) {
            let why = "the program starts with more rights than vsrun has, so the loader ignores vsrun's library; copy it and run the copy";
            return Err(StartError::Refused(why.into()));
        }
        tracee::fix_auxv(&mut root, AT_RANDOM).map_err(|e| StartError::Bug(format!("{e:?}")))?;
        let _running = root.resume(None).map_err(|e| StartError::Bug(format!("{e}")))?;
        self.await_root(1)?;
        self.find_points()?;
        self.replace_functions()?;
        self.watch_memory()?;
        self.state = RootState::take(&self.arena)?;
        self.output.keep()?;
        self.kept = self.keep()?;
        self.passed_before = self.arena.control.passed;
        self.control = self.arena.control;
        Ok(())
    }

    fn keep(&self) -> Result<Kept, StartError> {
        self.keep_of(self.root, &kept::Known::default()).map_err(StartError::Refused)
    }

    /// What executions share with that process, as it is now, but for what is `known`.
    pub(super) fn keep_of(&self, pid: Pid, known: &kept::Known) -> Result<Kept, String> {
        // Not the file behind /dev/urandom: where the program is in it is the program's.
        let own = [self.arena.fd(), Some(self.pool.as_raw_fd())];
        let own = own.into_iter().flatten().filter_map(|fd| std::fs::metadata(format!("/proc/self/fd/{fd}")).ok());
        let text = |e: io::Error| e.to_string();
        let pool = self.pool.try_clone().map_err(text)?;
        let root = kept::Root {
            pid,
            own: own.map(|found| (found.dev(), found.ino())).collect(),
            streams: [self.input.description().map_err(text)?, self.output.description().map_err(text)?],
            pool: (&pool, self.arena.control.pool_used),
            shm: self.dir.shm_and_beside(),
            known,
        };
        Kept::take(&root)
    }

    /// Waits until the root is ready for its next command for the `ready`th time.
    pub(super) fn await_root(&mut self, ready: u32) -> Result<(), StartError> {
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
                _ if self.arena.root_signs().0 >= ready => return Ok(()),
                _ => {}
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(1));
            if since.elapsed() > ROOT_LIMIT {
                return Err(StartError::Refused("the program did not reach main within a minute".into()));
            }
            if self.is_to_stop() {
                return Err(StartError::Interrupted);
            }
        }
    }

    /// Asks the root for what is no execution, and waits until that is done.
    pub(super) fn ask_root(&mut self, command: Command) -> Result<(), StartError> {
        self.commands += 1;
        self.arena.command(command.0);
        self.await_root(self.commands + 1)
    }

    /// A request to end has come, or there is no use in going on, or the execution has had its time.
    pub(super) fn is_to_stop(&self) -> bool {
        self.is_halted() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// A request to end has come, or there is no use in going on.
    pub fn is_halted(&self) -> bool {
        tracee::interrupted() || self.halt.is_due_but(self.grace)
    }

    /// From now on the time that is over ends nothing here before `grace`. A request to end vsrun does.
    pub fn grant(&mut self, grace: Option<Instant>) {
        self.grace = grace;
    }

    /// From now on executions are broken off then; `None`: they are not.
    pub fn break_off(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    fn before_root(&mut self, event: Event) -> Result<(), StartError> {
        match event {
            Event::Stopped(stopped) => {
                let signal = match stopped.reason() {
                    Reason::Signal(signal) => Some(signal),
                    _ => None,
                };
                let own = self.arena.world.procs.get(0).map(|p| &p.own);
                let answered = || is_reading(&stopped) || own.is_some_and(|own| is_answered(&stopped, own));
                let fatal = signal.filter(|s| is_fault(s.number()) && !answered());
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
        if matches!(world.end, End::UNSUPPORTED | End::ROOM | End::REFUSED | End::BUG) {
            return StartError::Refused(format!("before main: {}", String::from_utf8_lossy(world.message())));
        }
        let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
        StartError::Refused(format!("the program ended before its main began: {how}{said}"))
    }

    /// The variables of which each use is to be told, in the program, which stands at its root.
    fn find_points(&mut self) -> Result<(), StartError> {
        if !self.spec.points.is_empty() {
            let modules = Modules::of_process(self.root.as_raw(), &mut SymbolCache::new())?;
            self.points = Watchpoints::new(pieces(&self.spec.points, &modules)?);
        }
        Ok(())
    }

    /// The uses of these that the execution last run has made.
    pub fn watchlist(&self) -> &Watchlist {
        &self.list
    }

    /// What makes the states differ that its executions have met, if that is asked for.
    pub fn apart(&mut self) -> Option<Apart> {
        self.states.as_mut().map(States::compare)
    }

    /// Memory is watched.
    pub fn watches(&self) -> bool {
        self.watched.is_some()
    }

    /// What executions write goes to the real files.
    pub fn has_real_files(&self) -> bool {
        self.spec.options.real_files
    }

    /// Calls that are not modelled go to the kernel, by the user's wish.
    pub fn is_uncontrolled(&self) -> bool {
        self.let_through() != 0
    }

    /// The kinds of these calls, bits of [`vsrun_model::calls::KINDS`].
    pub fn let_through(&self) -> u32 {
        self.spec.options.uncontrolled
    }

    /// Threads that there were in the execution last run, those of all processes.
    pub fn threads(&self) -> usize {
        self.arena.world.threads.as_slice().len()
    }

    /// The wait status of the first process in the execution last run, if it got to its end.
    pub fn status(&self) -> Option<i32> {
        (self.arena.control.status_known != 0).then_some(self.arena.control.status)
    }

    /// What the execution last run did with files and is not explored: sentences. One that ends with [`ONLY_WRITTEN`] holds until a file turns
    /// out to be read.
    pub fn files_left_out(&self) -> Vec<String> {
        let files = &self.arena.files;
        let name = |bytes: &[u8], len: u32| {
            let bytes = &bytes[..(len as usize).min(bytes.len())];
            (len > 0).then(|| String::from_utf8_lossy(bytes).escape_debug().to_string())
        };
        let shown = name(&files.shown, files.shown_len).map(|file| {
            format!("file {file} is written by one thread and used by another: their order is not explored")
        });
        let logged = name(&files.logged, files.logged_len).map(|file| format!("file {file}{ONLY_WRITTEN}"));
        shown.into_iter().chain(logged).collect()
    }

    /// The absolute names of files that executions have used so far, where [`Spec::tells_names`] asks for them.
    pub fn names_told(&self) -> io::Result<BTreeSet<PathBuf>> {
        let told = self.dir.names_told()?;
        let names = told.split(|byte| *byte == 0).filter(|name| name.starts_with(b"/"));
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// Calls that went to the kernel since the root, by number, in all executions.
    pub fn passed(&self) -> impl Iterator<Item = u32> + '_ {
        let all = self.arena.control.passed.iter().zip(&self.passed_before).zip(&self.passed_earlier);
        all.map(|((now, before), earlier)| earlier.saturating_add(now.saturating_sub(*before)))
    }

    /// The same before the root.
    pub fn passed_before(&self) -> &[u32; MAX_SYSCALLS] {
        &self.passed_before
    }

    /// What is known of the sharing of objects from the next execution on.
    ///
    /// # Errors
    /// It is more than an arena has room for. Those of [`Worker::start`], where other libraries are known to come later.
    pub fn use_objects(&mut self, objects: &Arc<Objects>) -> Result<(), StartError> {
        if self.spec.watch.is_some() && self.spec.objects.late != objects.late {
            self.spec.objects = Arc::clone(objects);
            return self.begin_anew();
        }
        if !Arc::ptr_eq(&self.spec.objects, objects) {
            self.end_standing();
            objects.write(&mut self.arena).map_err(|e| StartError::Environment(e.into()))?;
            self.spec.objects = Arc::clone(objects);
        }
        Ok(())
    }

    /// Ends the world and begins another one with what is known now: patches are made once, at the root.
    pub(super) fn begin_anew(&mut self) -> Result<(), StartError> {
        let input = self.input.another()?;
        let (spec, echo) = (self.spec.clone(), self.echo.take());
        let passed = self.passed().collect();
        // All that this thread has forked is taken for the worker's.
        self.end();
        *self = Worker::start_on(self.cpu, Arc::clone(&self.halt), spec, input, echo)?;
        self.passed_earlier = passed;
        Ok(())
    }

    /// What the execution last run showed, as far as the model alone knows.
    pub fn finding(&self, outcome: &Outcome) -> Finding {
        look::from_model(&self.arena.world, &outcome.trace, &outcome.ending, &|_| None)
    }

    /// So many of the last transitions of an execution that is looked at are told from where they are made; 0: none is. `None`: as
    /// many as usual.
    pub fn tell_last(&mut self, most: Option<u64>) {
        self.told.tell_last(most);
    }

    /// Whether who writes to vsrun's memory faults in executions that are looked at, as is usual. What was looked at before and is only stood
    /// in again takes a quarter of the time without.
    pub fn guard_looks(&mut self, guarded: bool) {
        self.looks_unguarded = !guarded;
    }

    /// Who could move where the execution last run was cut, and in how many ways each.
    pub fn enabled(&self) -> Vec<(Uid, u32)> {
        let world = &self.arena.world;
        let name = |&(t, ways): &(Tid, u32)| Some((world.threads.get(t)?.uid, ways));
        match world.end {
            End::DEPTH => self.arena.enabled.as_slice().iter().filter_map(name).collect(),
            _ => Vec::new(),
        }
    }

    /// The execution last run has shown that threads share more than was known: operations on that were no places to switch.
    pub fn shows_more_sharing(&self) -> bool {
        Shown::read(&self.arena, &self.spec.objects.late).is_new() || !answered(&self.arena).is_empty()
    }

    /// A hash of all transitions of the execution last run, recorded or not.
    pub fn trail(&self) -> u64 {
        self.arena.trail
    }
}

impl Worker {
    /// Ends all that it has started.
    fn end(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        log::debug!("{} of {} executions went back", self.back.came_back, self.runs);
        // It may have died, and been waited for.
        send(self.root, Signal::SIGKILL);
        let guard = self.dir.guard_pid();
        // What forks while it is listed has a child that is not in the list.
        for _ in 0..LISTINGS {
            let mut left = children();
            left.retain(|&child| Some(child) != guard);
            if left.is_empty() {
                break;
            }
            reap(left, &self.dir);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

fn launch_error(e: LaunchError) -> StartError {
    StartError::Environment(format!("the program could not be started: {e}"))
}
