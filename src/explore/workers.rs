//! The workers of an exploration, one thread each, and what they share: the search and what was found.
//!
//! NOTE [One thread, one world]. The kernel ties a world to the thread that started it (ptrace, waitpid, parent-death
//! signal: see `runtime::tracee`), so a worker is a thread from its start to its end, on a CPU of its own. The first one
//! is the thread that asked for the exploration; it also puts the end together.
//!
//! NOTE [Order]. A bug is recorded before the search learns that its execution is over. So whenever the state is
//! saved, each bug is in it or will be found again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vsrun_model::arena::{Policy, MAX_SYSCALLS};
use vsrun_model::op::VARIANT;
use vsrun_model::world::{CPU_TIMER, GAVE_UP_FLOCK, SEVERAL_OWNERS, SIGIO};
use vsrun_model::{End, Kind, Op, World};

use super::bounds;
use super::found::{look, Candidate, Found};
use super::judge::{judge, other_circles, Judged};
use super::progress::{Figures, Progress};
use super::save::Saver;
use super::{search_of, watch, Failure, Setting};
use crate::args::{Config, SearchKind};
use crate::report::identity::fnv1a;
use crate::report::{Bug, BugKind, Incomplete, NEVER_CAME, NOT_PROVEN};
use crate::runtime::inspect::Inspector;
use crate::runtime::session::Input;
use crate::runtime::tracee;
use crate::runtime::worker::{Ending, Outcome, Worker};
use crate::schedule::Schedule;
use crate::search::Search;
use crate::sharing::{Objects, Sharing, Shown};
use crate::trace::Trace;

/// How often a worker that has nothing to do looks whether vsrun is asked to end.
const IDLE: Duration = Duration::from_millis(100);
/// Unless a number of workers was asked for, more than one are started only for a search that lasts so long.
const LASTING: Duration = Duration::from_millis(200);

/// Why an exploration ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Stop {
    /// The search is over.
    Over,
    /// At a bug, or at something that is not supported.
    FirstBug,
    /// At a bound.
    Bound(Incomplete),
    /// vsrun was asked to end.
    Interrupted,
    /// A worker failed.
    Failed,
}

/// What was counted and noted so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Executions that are over, with those that were run ahead of their turns.
    pub executions: u64,
    /// Transitions of the longest one.
    pub max_depth: u64,
    /// One was cut at the depth bound.
    pub cut: bool,
    /// What executions that ran to their end printed and exited with, by hash.
    pub printed: BTreeSet<u64>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Counts {
    pub fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|n| n == text) {
            self.notes.push(text.to_string());
        }
    }
}

/// What the workers share.
pub(super) struct State {
    pub search: Box<dyn Search>,
    /// What is known of the sharing of objects.
    pub sharing: Sharing,
    pub counts: Counts,
    /// Bugs, by identity.
    pub found: BTreeMap<u64, Found>,
    /// What ended the exploration because it is not supported.
    pub unsupported: Option<Bug>,
    pub stop: Option<Stop>,
    /// invariant: `stop` is set if this is.
    pub failure: Option<Failure>,
    /// Calls that went to the kernel, by worker, those of the root only with the first.
    pub passed: Vec<Vec<u32>>,
    /// The same before this run, if it was resumed.
    pub passed_earlier: Vec<u32>,
    pub progress: Progress,
    pub saver: Option<Saver>,
    /// When this run began, and for how many seconds earlier ones explored.
    pub started_at: Instant,
    pub seconds_earlier: f64,
    /// Executions that were started.
    started: u64,
    under_way: usize,
    idle: usize,
    /// The first worker has its world.
    open: bool,
}

/// An execution to be run.
#[derive(Clone)]
pub(super) struct Task {
    /// Its number, from 1.
    pub number: u64,
    pub schedule: Schedule,
    /// What is known of the sharing of objects.
    pub objects: Arc<Objects>,
    /// How often the search has started over.
    pub restarts: u64,
}

/// An exploration as its workers see it.
pub(super) struct Shared<'a> {
    pub setting: &'a Setting<'a>,
    state: Mutex<State>,
    changed: Condvar,
    /// Ends executions that are under way.
    stop: Arc<AtomicBool>,
    input: Input,
}

impl State {
    /// An exploration that has not begun, or that goes on from `counts`.
    pub fn new((search, sharing): (Box<dyn Search>, Sharing), counts: Counts, progress: Progress) -> State {
        State {
            search,
            started_at: Instant::now(),
            seconds_earlier: 0.0,
            started: counts.executions + sharing.earlier(),
            sharing,
            counts,
            found: BTreeMap::new(),
            unsupported: None,
            stop: None,
            failure: None,
            passed: Vec::new(),
            passed_earlier: Vec::new(),
            progress,
            saver: None,
            under_way: 0,
            idle: 0,
            open: false,
        }
    }

    /// Sums over the workers, by number of the call.
    pub fn passed_calls(&self) -> [u32; MAX_SYSCALLS] {
        let mut sums = [0u32; MAX_SYSCALLS];
        for worker in self.passed.iter().chain([&self.passed_earlier]) {
            sums.iter_mut().zip(worker).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        }
        sums
    }

    pub fn figures(&self) -> Figures {
        figures(&*self.search, &self.counts, self.found.len())
    }

    /// The search starts over, with what is known of objects now.
    fn start_over(&mut self, config: &Config) -> Result<(), Failure> {
        self.search = search_of(config)?;
        self.search.watch(watch(config, self.started_at));
        self.sharing.start_over(self.counts.executions);
        (self.counts.executions, self.counts.max_depth, self.counts.cut) = (0, 0, false);
        self.progress.start_over();
        Ok(())
    }

    /// The next execution.
    fn hand_out(&mut self, search: SearchKind) -> Option<Task> {
        let mut schedule = self.search.next()?;
        if search == SearchKind::Once {
            schedule.policy = Policy::LIKELY;
        }
        self.under_way += 1;
        self.started += 1;
        let (objects, restarts) = (Arc::clone(self.sharing.objects()), self.sharing.restarts());
        Some(Task { number: self.started, schedule, objects, restarts })
    }

    /// Ends the exploration unless something else has ended it.
    fn end(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }

    fn report_progress(&mut self) {
        let State { search, counts, found, progress, .. } = self;
        progress.look(|| figures(&**search, counts, found.len()));
    }
}

/// What a program does for which `search` is not proven to lose nothing: random programs with some of it have shown a trace
/// that was missed (tests/search_optimal.rs, `unproven`). Then the search is not complete, and says so. A thread that is alone has
/// no orders to leave out.
fn unproven(search: SearchKind, trace: &Trace, world: &World) -> Option<&'static str> {
    let seen = trace.seen.iter().chain([&trace.last]);
    let alone = trace.steps.iter().all(|s| s.act.uid == trace.steps[0].act.uid) && seen.clone().all(|s| s.len() <= 1);
    if alone || !matches!(search, SearchKind::Dpor | SearchKind::Optimal) {
        return None;
    }
    // What was done, and what was pending and may have been left out.
    let acts = trace.steps.iter().map(|s| &s.act).chain(seen.flatten().map(|s| &s.act));
    beyond(world).or_else(|| acts.map(|act| act.op).find_map(|op| not_claimed(&op)))
}

/// What the world has seen happen, of `unproven`.
fn beyond(world: &World) -> Option<&'static str> {
    let reasons = [
        (GAVE_UP_FLOCK, "flock gave up one kind of lock to wait for the other"),
        (SEVERAL_OWNERS, "F_GETLK found locks of several processes, in the order of their list"),
    ];
    reasons.into_iter().find(|(bit, _)| world.beyond & bit != 0).map(|(_, reason)| reason)
}

/// What an operation is by itself, of `unproven`.
fn not_claimed(op: &Op) -> Option<&'static str> {
    match op.kind {
        Kind::FUTEX_LOCK_PI => Some("futexes with priority inheritance were locked"),
        Kind::MQ_SEND if op.has(VARIANT) => Some("a message was sent while mq_notify waited for one"),
        _ => None,
    }
}

/// Saves where it is time to; what goes wrong is noted.
fn save_if_due(state: &mut State, setting: &Setting) {
    let Some(mut saver) = state.saver.take_if(|saver| saver.is_due()) else { return };
    if let Err(e) = saver.save(
        setting,
        (&*state.search, &state.sharing),
        (&state.counts, &state.passed_calls()),
        state.found.values(),
    ) {
        state.counts.note(&e);
    }
    state.saver = Some(saver);
}

fn figures(search: &dyn Search, counts: &Counts, bugs: usize) -> Figures {
    Figures {
        executions: counts.executions - search.discarded(),
        transitions: search.transitions(),
        max_depth: counts.max_depth,
        frontier: search.frontier(),
        bugs,
        done: search.progress(),
    }
}

impl<'a> Shared<'a> {
    pub fn new(setting: &'a Setting<'a>, input: Input, state: State) -> Shared<'a> {
        let (state, changed, stop) = (Mutex::new(state), Condvar::new(), Arc::default());
        Shared { setting, state, changed, stop, input }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left of it once all workers have ended.
    pub fn into_state(self) -> State {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Explores with one worker on each of `cpus` (`None`: wherever it runs); `eager`: all of them from the start. The
    /// first one, which is given back with its inspector, is the calling thread's; what its program prints goes to
    /// `echo` at once.
    pub fn run(&self, cpus: &[Option<usize>], eager: bool, echo: Option<File>) -> Result<(Worker, Inspector), Failure> {
        self.lock().passed = vec![Vec::new(); cpus.len()];
        std::thread::scope(|scope| {
            for (place, &cpu) in cpus.iter().enumerate().skip(1) {
                scope.spawn(move || self.help(place, cpu, eager));
            }
            let first = cpus.first().copied().flatten();
            let result = self.start(first, echo).and_then(|mut worker| {
                let mut inspector = Inspector::default();
                self.learn_bounds(&worker);
                self.open(&worker)?;
                self.work(0, &mut worker, &mut inspector, None)?;
                Ok((worker, inspector))
            });
            if result.is_err() {
                self.end(Stop::Failed);
            }
            result
        })
        .and_then(|done| match self.lock().failure.take() {
            Some(failure) => Err(failure),
            None => Ok(done),
        })
        .inspect(|_| self.stop.store(false, Ordering::Relaxed))
    }

    fn start(&self, cpu: Option<usize>, echo: Option<File>) -> Result<Worker, Failure> {
        let spec = self.setting.spec.clone();
        Ok(Worker::start_on(cpu, Arc::clone(&self.stop), spec, self.input.another()?, echo)?)
    }

    /// Tells the search what the threads of the program may do, if it asks for that.
    fn learn_bounds(&self, worker: &Worker) {
        let mut state = self.lock();
        if state.search.wants_bounds() {
            let (bounds, note) = bounds::of_root(worker.root_pid());
            state.search.learn_bounds(bounds);
            note.into_iter().for_each(|text| state.counts.note(&text));
        }
    }

    /// The first worker has its world: now it begins.
    fn open(&self, worker: &Worker) -> Result<(), Failure> {
        let mut state = self.lock();
        state.sharing.find(worker)?;
        state.open = true;
        state.started_at = Instant::now();
        self.changed.notify_all();
        Ok(())
    }

    /// Ends the exploration and what is under way.
    fn end(&self, stop: Stop) {
        self.lock().end(stop);
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// A worker other than the first: it starts its world when there is work for it.
    fn help(&self, place: usize, cpu: Option<usize>, eager: bool) {
        if !self.is_needed(eager) {
            return;
        }
        let Some(task) = self.take() else { return };
        let result = self.start(cpu, None).and_then(|mut worker| {
            let mut inspector = Inspector::default();
            self.work(place, &mut worker, &mut inspector, Some(task))
        });
        if let Err(failure) = result {
            let mut state = self.lock();
            // What fails because the others have ended is no failure.
            if !matches!(state.stop, Some(Stop::FirstBug | Stop::Failed | Stop::Interrupted)) {
                state.failure = Some(failure);
            }
            drop(state);
            self.end(Stop::Failed);
        }
    }

    /// Waits until the first worker has begun and, unless `eager`, the search has lasted. False: it is over.
    fn is_needed(&self, eager: bool) -> bool {
        let mut state = self.lock();
        while state.stop.is_none() {
            if state.open && (eager || state.started_at.elapsed() >= LASTING) {
                return true;
            }
            state = self.pause(state);
        }
        false
    }

    fn pause<'g>(&self, state: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        let waited = self.changed.wait_timeout(state, IDLE);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn work(
        &self,
        place: usize,
        worker: &mut Worker,
        inspector: &mut Inspector,
        first: Option<Task>,
    ) -> Result<(), Failure> {
        let mut next = first.or_else(|| self.take());
        while let Some(task) = next {
            worker.use_objects(&task.objects)?;
            let outcome = worker.run(&task.schedule)?;
            if outcome.ending == Ending::Interrupted {
                self.abandon();
                return Ok(());
            }
            let shared = Shown::at_end(&worker.arena, &outcome, self.setting.config.keep_going);
            // Where objects turned out to be shared, there are more transitions than the search knew of, and it starts
            // over: that the schedule could not be followed is no matter then.
            if !(shared.is_new() && outcome.trace.end == End::MISMATCH) {
                self.judge_and_record(worker, inspector, &task, &outcome)?;
            }
            self.finish(place, worker, &task, &outcome, shared)?;
            next = self.take();
        }
        Ok(())
    }

    /// Judges what the worker has just run, and records it.
    fn judge_and_record(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        task: &Task,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        worker.files_left_out().iter().for_each(|text| self.lock().counts.note(text));
        let circles = other_circles(&worker.arena.world, outcome);
        let judged = judge(worker, inspector, (task.number, &task.schedule), outcome)?;
        self.record(worker, inspector, task, outcome, judged)?;
        for schedule in circles {
            let short = Task { schedule, ..task.clone() };
            let outcome = worker.run(&short.schedule)?;
            let judged = judge(worker, inspector, (short.number, &short.schedule), &outcome)?;
            self.record(worker, inspector, &short, &outcome, judged)?;
        }
        Ok(())
    }

    /// The next execution to run; waits while there is none but may be. `None`: the exploration ends.
    fn take(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.stop.is_some() {
                return None;
            }
            let spent = self.spent(&state);
            if state.sharing.is_due() && state.under_way == 0 && spent.is_none() {
                if let Err(failure) = state.start_over(self.setting.config) {
                    state.failure = Some(failure);
                    state.end(Stop::Failed);
                    continue;
                }
            }
            let wait = state.under_way > 0 && (!state.search.parallel() || state.sharing.is_due());
            match if wait || spent.is_some() { None } else { state.hand_out(self.setting.config.search) } {
                Some(task) => return Some(task),
                None if spent.is_none() && state.under_way > 0 => {
                    state.idle += 1;
                    state = self.pause(state);
                    state.idle -= 1;
                }
                None => {
                    state.end(spent.unwrap_or(Stop::Over));
                    self.changed.notify_all();
                }
            }
        }
    }

    /// The bound that is reached, if one is.
    fn spent(&self, state: &State) -> Option<Stop> {
        let bounds = &self.setting.config.bounds;
        if tracee::interrupted() {
            return Some(Stop::Interrupted);
        }
        if bounds.executions.is_some_and(|n| state.started - state.search.discarded() >= n) {
            return Some(Stop::Bound(Incomplete::Executions));
        }
        bounds.time.filter(|&t| state.started_at.elapsed() >= t).map(|_| Stop::Bound(Incomplete::Time))
    }

    /// An execution was broken off: for the search it is still under way.
    fn abandon(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        state.end(Stop::Interrupted);
        self.changed.notify_all();
    }

    /// Records what an execution showed.
    fn record(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        task: &Task,
        outcome: &Outcome,
        judged: Judged,
    ) -> Result<(), Failure> {
        match judged {
            Judged::Clean => {}
            Judged::Note(text) => self.lock().counts.note(text),
            Judged::Unsupported { summary, details } => {
                self.lock().unsupported.get_or_insert(Bug {
                    kind: BugKind::Error,
                    summary: format!("unsupported: {summary}"),
                    scenario: None,
                    execution: task.number,
                    transitions: outcome.trace.steps.len() as u64,
                    details,
                });
                self.end(Stop::FirstBug);
            }
            Judged::Bug { kind, identity } => {
                let candidate = Candidate::new(task, outcome);
                self.bug(worker, inspector, (kind, identity), candidate)?;
            }
        }
        Ok(())
    }

    /// A bug that is new is looked at and written down.
    fn bug(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        (kind, identity): (BugKind, u64),
        candidate: Candidate,
    ) -> Result<(), Failure> {
        let mut state = self.lock();
        if let Some(known) = state.found.get_mut(&identity) {
            known.offer(candidate);
            return Ok(());
        }
        state.found.insert(identity, Found::new(identity, kind, candidate.clone()));
        drop(state);
        let seen = look(worker, inspector, self.setting, (kind, identity), &candidate)?;
        let mut state = self.lock();
        if state.stop == Some(Stop::FirstBug) {
            // Another worker was first.
            state.found.remove(&identity);
            return Ok(());
        }
        if !self.setting.config.keep_going {
            state.end(Stop::FirstBug);
            self.stop.store(true, Ordering::Relaxed);
        }
        let Some((shown, note)) = seen else { return Ok(()) };
        let written = state.found.get_mut(&identity).map(|bug| {
            bug.show(shown);
            bug.write(self.setting)
        });
        let failed = written.and_then(Result::err).map(|e| e.to_string());
        note.into_iter().chain(failed).for_each(|text| state.counts.note(&text));
        Ok(())
    }

    /// An execution is over, and recorded.
    fn finish(
        &self,
        place: usize,
        worker: &Worker,
        task: &Task,
        outcome: &Outcome,
        shared: Shown,
    ) -> Result<(), Failure> {
        let printed = self.printed(worker, outcome)?;
        let mut state = self.lock();
        state.under_way -= 1;
        let counts = &mut state.counts;
        counts.executions += 1;
        counts.max_depth = counts.max_depth.max(outcome.trace.steps.len() as u64 + outcome.trace.unrecorded);
        counts.cut |= outcome.trace.end == End::DEPTH;
        counts.printed.extend(printed);
        if let Some(reason) = unproven(self.setting.config.search, &outcome.trace, &worker.arena.world) {
            counts.note(&format!("{reason}{NOT_PROVEN}"));
        }
        let signals = [
            (SIGIO, "SIGIO for input on a descriptor (FIOASYNC)"),
            (CPU_TIMER, "the signal of a timer of processor time"),
        ];
        for (_, signal) in signals.iter().filter(|(bit, _)| worker.arena.world.never_come & bit != 0) {
            counts.note(&format!("{signal}{NEVER_CAME}"));
        }
        if worker.arena.world.held_back {
            counts.note(
                "fair schedules only: a thread that calls sched_yield again and again was made to wait until another had \
                 moved",
            );
        }
        let with_root = place == 0 && state.passed_earlier.is_empty();
        let passed = &mut state.passed[place];
        passed.clear();
        passed.extend(worker.passed());
        if with_root {
            passed.iter_mut().zip(worker.passed_before()).for_each(|(n, before)| *n = n.saturating_add(*before));
        }
        state.search.done(task.schedule.ticket, &outcome.trace);
        state.sharing.learn(shared);
        state.report_progress();
        save_if_due(&mut state, self.setting);
        if state.idle > 0 {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// A program that prints something else under another schedule is worth a look: what tells outputs apart.
    fn printed(&self, worker: &Worker, outcome: &Outcome) -> Result<Option<u64>, Failure> {
        let whole = outcome.ending == Ending::Modelled && outcome.trace.end == End::FINISHED;
        if !whole || self.setting.config.search == SearchKind::Once {
            return Ok(None);
        }
        let status = worker.status().unwrap_or(-1);
        Ok(Some(fnv1a(worker.output.start()?.into_iter().chain(status.to_le_bytes()))))
    }
}
