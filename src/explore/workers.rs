//! The workers of an exploration, one thread each, and what they share: the search and what was found.
//!
//! NOTE [One thread, one world]. The kernel ties a world to the thread that started it (ptrace, waitpid, parent-death
//! signal: see `runtime::tracee`), so a worker is a thread from its start to its end, on a CPU of its own. The first one
//! is the thread that asked for the exploration; it also puts the end together.
//!
//! NOTE [Order]. A bug is recorded before the search learns that its execution is over. So whenever the state is
//! saved, each bug is in it or will be found again.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vsrun_model::arena::Seen;
use vsrun_model::{End, Kind};

use super::bounds;
use super::executions::{length, replayable, Task};
use super::failure::Failure;
use super::found::{look, Candidate, Found, Look};
use super::judge::{is_past_circle, judge, other_circles, Judged};
use super::outcomes::Ended;
use super::setting::Setting;
use super::sharing::shown_by;
use super::shorten::{is_wanted_now, look_shorter};
use super::state::{State, Stop};
use super::unfinished::Unfinished;
use crate::config::SearchKind;
use crate::finding::{Bug, BugKind, Ending, Finding};
use crate::incomplete::Reason;
use crate::objects::Shown;
use crate::race::loads_overtake;
use crate::runtime::halt::Halt;
use crate::runtime::streams::{Input, KEPT};
use crate::runtime::{tracee, GoesBack, Inspector, Outcome, Sign, Worker, LAST_STEPS};
use crate::schedule::Schedule;

/// How often a worker that has nothing to do looks whether vsrun is asked to end.
const IDLE: Duration = Duration::from_millis(100);
/// Unless a number of workers was asked for, more than one are started only for a search that lasts so long.
const LASTING: Duration = Duration::from_millis(200);

/// So long an execution may go on after the time is over (`--time`), and then what was found is looked at. Both together, and what takes
/// the program's processes away, are to end within a second; of a million transitions in a loop they do in 1.3 seconds.
const GRACE: Duration = Duration::from_millis(250);

/// So long a bug that has just been found may be run once more and looked at, though the time is over: a report that only names it helps nobody.
const CONFIRMING: Duration = Duration::from_secs(2);

/// A search that goes on with what it learns, rather than start over, looks at the first so many transitions of an execution alone as long as
/// objects turn out to be shared in them: what a thread did with these before was no place to switch, so an execution without an end may show
/// little else.
const FIRST_LOOK: u64 = 10_000;

/// What is said where a divergence does not come again.
const SLOW: &str = "an execution computed for longer than --divergence-timeout without a visible operation, and did not when it was run \
                    again, which counts: the machine was busy, or the timeout is short for this program";

/// When what is under way is broken off, if the time is over at `until`.
fn last_moment(until: Option<Instant>) -> Option<Instant> {
    until.and_then(|until| until.checked_add(GRACE))
}

/// What an execution has left behind beside its outcome.
struct Left {
    /// What it printed and exited with, if it ran to its end.
    ended: Option<Ended>,
    /// It printed more than is kept.
    not_kept: bool,
    /// What of its memory was not seen.
    unseen: Option<String>,
    /// Calls that went to the kernel, by number.
    passed: Vec<u32>,
    /// Its process has gone back, or why not.
    back: GoesBack,
}

/// An exploration as its workers see it.
pub(super) struct Shared<'a> {
    pub setting: &'a Setting<'a>,
    state: Mutex<State>,
    changed: Condvar,
    /// Ends executions that are under way.
    halt: Arc<Halt>,
    input: Input,
    /// No execution has computed for long.
    hasty: AtomicBool,
}

impl<'a> Shared<'a> {
    pub fn new(setting: &'a Setting<'a>, input: Input, state: State) -> Shared<'a> {
        let (state, changed, halt) = (Mutex::new(state), Condvar::new(), Arc::<Halt>::default());
        halt.put_off(last_moment(setting.until));
        Shared { setting, state, changed, halt, input, hasty: AtomicBool::new(true) }
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
                let started = std::thread::Builder::new().spawn_scoped(scope, move || self.help(place, cpu, eager));
                if let Err(e) = started {
                    self.lock().counts.note(&format!(
                        "no more than {place} of {} workers: no thread for another one ({e})",
                        cpus.len()
                    ));
                    break;
                }
            }
            if let Some(interval) = self.lock().progress.interval() {
                // Where there is no thread for it, it is told after each execution only.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || self.tell_progress(interval));
            }
            let first = cpus.first().copied().flatten();
            let result = self.start(first, echo).and_then(|mut worker| {
                let mut inspector = Inspector::default();
                self.learn_bounds(&worker);
                self.open(&worker)?;
                if let Err(failure) = self.work(0, &mut worker, &mut inspector, None) {
                    self.fail(&failure);
                }
                // Who tells of progress waits for long.
                self.changed.notify_all();
                Ok((worker, inspector))
            });
            if result.is_err() {
                self.end(Stop::Failed);
            }
            result
        })
        .inspect(|_| self.halt.put_off(self.last_look()))
    }

    /// What was found is still looked at, but not for long where time was over or somebody wants an end, nor for long after the time.
    fn last_look(&self) -> Option<Instant> {
        let hurried = matches!(self.lock().stop, Some(Stop::Interrupted | Stop::Bound(Reason::Time)));
        let now = Instant::now();
        match hurried {
            true => Some(now + GRACE),
            false => last_moment(self.setting.until).map(|last| last.max(now + GRACE)),
        }
    }

    fn start(&self, cpu: Option<usize>, echo: Option<File>) -> Result<Worker, Failure> {
        let spec = self.setting.spec.clone();
        Ok(Worker::start_on(cpu, Arc::clone(&self.halt), spec, self.input.another()?, echo)?)
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
        worker.tossed().iter().for_each(|tossed| state.counts.note(&tossed.line()));
        worker.watched().iter().flat_map(|watched| &watched.notes).for_each(|text| state.counts.note(text));
        state.open = true;
        state.started_at = Instant::now();
        self.changed.notify_all();
        Ok(())
    }

    /// Ends the exploration and what is under way.
    fn end(&self, stop: Stop) {
        self.lock().end(stop);
        self.halt.set();
        self.changed.notify_all();
    }

    /// Ends the exploration because it failed, and what is under way.
    fn fail(&self, failure: &Failure) {
        let mut state = self.lock();
        if let Some(spent) = self.spent(&state).filter(|_| failure.is_interrupted()) {
            // A world that was being set up was given up for that.
            state.end(spent);
        }
        state.fail(failure);
        drop(state);
        self.halt.set();
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
            self.fail(&failure);
        }
    }

    /// Tells how far it has got while executions go on, to the end.
    fn tell_progress(&self, interval: Duration) {
        let mut state = self.lock();
        while state.stop.is_none() {
            let waited = self.changed.wait_timeout(state, interval);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.report_progress();
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
        while let Some(mut task) = next {
            let outcome = self.run_task(worker, &mut task)?;
            if outcome.ending == Ending::Interrupted {
                self.break_off(&task, outcome, worker);
                return Ok(());
            }
            let left = self.left_by(worker, &outcome)?;
            let races = self.races(worker, &outcome);
            let shown = shown_by(&outcome, self.setting.config.keep_going);
            // Where objects turned out to be shared, there are more transitions than the search knew of, and it starts
            // over: that the schedule could not be followed is no matter then.
            let counts = shown.is_new() && (outcome.trace.end == End::MISMATCH || self.will_tell(&outcome))
                || self.judge_and_record(worker, inspector, &task, &outcome)?
                    && self.record_races(worker, inspector, &task, &outcome, races)?;
            if !counts {
                self.abandon();
                return Ok(());
            }
            if outcome.given_up {
                // What it has shown is recorded; the search, which needs all of it, has it still under way.
                self.break_off(&task, outcome, worker);
                return Ok(());
            }
            if self.finish(place, worker, &task, &outcome, (shown, left))? {
                self.look_at_first_cut(worker, inspector);
            }
            next = self.take();
        }
        Ok(())
    }

    /// Runs an execution. Whether one computes for too long is a question of the clock, so a divergence counts if it comes twice.
    fn run_task(&self, worker: &mut Worker, task: &mut Task) -> Result<Outcome, Failure> {
        let whole = self.look_for_objects(worker, task)?;
        let hasty = whole.is_none() && self.may_be_hasty();
        let mut outcome = match whole {
            Some(whole) => whole,
            None => {
                worker.use_objects(&task.objects)?;
                if hasty {
                    worker.run_hasty(&task.schedule)?
                } else {
                    worker.run(&task.schedule)?
                }
            }
        };
        // One alone prints, and changes files, once.
        if outcome.ending != Ending::Divergence || self.setting.config.search == SearchKind::Once {
            return Ok(outcome);
        }
        if self.will_be_objects(&outcome) {
            return Ok(outcome);
        }
        if hasty {
            // The program computes for long.
            self.hasty.store(false, Ordering::Relaxed);
            outcome = worker.run(&task.schedule)?;
            if outcome.ending != Ending::Divergence || self.will_be_objects(&outcome) {
                return Ok(outcome);
            }
        }
        let again = worker.run(&task.schedule)?;
        if !matches!(again.ending, Ending::Divergence | Ending::Interrupted) {
            self.lock().counts.note(SLOW);
        }
        Ok(again)
    }

    /// Whether a loop that goes on may wait for memory that is no object yet, and it pays to find that out soon.
    fn may_be_hasty(&self) -> bool {
        let config = self.setting.config;
        // What is run once more changes files once more.
        let watches = config.race().watches() && config.private_files() && config.search != SearchKind::Once;
        watches && self.hasty.load(Ordering::Relaxed) && self.lock().sharing.has_room()
    }

    /// A loop went on for too long, and more memory turned out to be an object: only an execution in which that is one knows whether it waits.
    fn will_be_objects(&self, outcome: &Outcome) -> bool {
        // One that nobody could let go on any more diverges in any case.
        let diverges = outcome.ending == Ending::Divergence && outcome.sign == Sign::Clean;
        let words = || shown_by(outcome, self.setting.config.keep_going).words;
        diverges && !words().is_empty() && self.lock().sharing.has_room()
    }

    /// Looks at the beginning of an execution, again and again until nothing more of it turns out to be an object; what is known then is given
    /// to the execution. One that is over before it would be cut is the execution.
    fn look_for_objects(&self, worker: &mut Worker, task: &mut Task) -> Result<Option<Outcome>, Failure> {
        if self.setting.config.search == SearchKind::Once {
            return Ok(None);
        }
        let goes_on = |state: &State| !state.sharing.starts_over() && !state.looked_for_objects && state.stop.is_none();
        while goes_on(&self.lock()) {
            worker.use_objects(&task.objects)?;
            let outcome = worker.run(&Schedule { most: Some(FIRST_LOOK), ..task.schedule.clone() })?;
            if outcome.trace.end != End::DEPTH || length(&outcome) < FIRST_LOOK {
                return Ok(Some(outcome));
            }
            // The execution itself counts what it passes.
            let shown = Shown { passed: 0, ..shown_by(&outcome, self.setting.config.keep_going) };
            let races = if shown.names.is_empty() { worker.races(&outcome) } else { Vec::new() };
            let mut state = self.lock();
            if state.sharing.has_room() {
                state.sharing.note_races(races);
                state.sharing.learn(shown);
            }
            state.looked_for_objects = Arc::ptr_eq(&task.objects, state.sharing.objects());
            task.objects = Arc::clone(state.sharing.objects());
        }
        Ok(None)
    }

    /// Judges what the worker has just run, and records it. False: it was disturbed and counts for nothing.
    fn judge_and_record(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        task: &Task,
        outcome: &Outcome,
    ) -> Result<bool, Failure> {
        worker.files_left_out().iter().for_each(|text| self.lock().counts.note(text));
        let circles = other_circles(outcome);
        let judged = match is_past_circle(outcome) {
            true => Judged::Clean,
            false => judge(worker, inspector, (task.number, &task.schedule), outcome)?,
        };
        if !self.record(worker, inspector, task, outcome, judged)? {
            return Ok(false);
        }
        for schedule in circles {
            let short = Task { schedule, ..task.clone() };
            let outcome = worker.run(&short.schedule)?;
            let judged = judge(worker, inspector, (short.number, &short.schedule), &outcome)?;
            if !self.record(worker, inspector, &short, &outcome, judged)? {
                return Ok(false);
            }
        }
        Ok(true)
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
                if let Err(failure) = state.start_over(self.setting) {
                    state.fail(&failure);
                }
                // A piece does not start over: what it has left is of a search that did not know these objects.
                if state.stop.is_some() {
                    self.changed.notify_all();
                    return None;
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
            return Some(Stop::Bound(Reason::Executions));
        }
        self.setting.is_time_over().then_some(Stop::Bound(Reason::Time))
    }

    /// The time was over, or vsrun was asked to end, within an execution.
    fn break_off(&self, task: &Task, mut outcome: Outcome, worker: &Worker) {
        let unfinished = Unfinished::broken_off(task, &outcome);
        // To put all of many steps in words takes longer than there is time left.
        outcome.trace.keep_last(LAST_STEPS);
        let seen = worker.finding(&outcome);
        let mut state = self.lock();
        let longest = state.counts.broken_off.unwrap_or(0);
        state.counts.broken_off = Some(longest.max(length(&outcome)));
        unfinished.stands_in(&mut state.unfinished, seen);
        drop(state);
        self.abandon();
    }

    /// An execution was broken off: for the search it is still under way.
    fn abandon(&self) {
        let mut state = self.lock();
        state.under_way -= 1;
        let why = self.spent(&state).unwrap_or(Stop::Interrupted);
        state.end(why);
        self.changed.notify_all();
    }

    /// Records what an execution showed. False: it was disturbed and counts for nothing.
    fn record(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        task: &Task,
        outcome: &Outcome,
        judged: Judged,
    ) -> Result<bool, Failure> {
        match judged {
            Judged::Clean => {}
            Judged::Note(text) => self.lock().counts.note(&text),
            Judged::Unsupported(bug) => self.stop_at(*bug),
            Judged::Disturbed(bug) => {
                self.stop_at(*bug);
                return Ok(false);
            }
            Judged::Failed(failure) => {
                self.fail(&failure);
                return Ok(false);
            }
            Judged::Bug { kind, identity } => {
                let candidate = Candidate::new(task, outcome);
                let counts = self.bug(worker, inspector, (kind, identity), outcome, candidate)?;
                if outcome.is_untold() {
                    // There is no trace that the search could go on from.
                    self.end(Stop::FirstBug);
                }
                return Ok(counts && !outcome.is_untold());
            }
        }
        Ok(true)
    }

    /// The uses of memory that are bugs, by identity, with the steps that lead there.
    ///
    /// Of two that nothing orders it is waited until their memory is an object and both are pending at once: an order that is no step (the
    /// end of an initializer of pthread_once) is seen then. Where that does not come, because there is one execution only, or no room for
    /// more objects, what the trace says has to do.
    fn races(&self, worker: &Worker, outcome: &Outcome) -> Vec<(u64, Vec<usize>)> {
        if outcome.conflicts.is_empty() {
            return Vec::new();
        }
        let state = self.lock();
        let (quiet, has_room) = (Arc::clone(state.sharing.quiet()), state.sharing.has_room());
        drop(state);
        let at_once = self.setting.config.search == SearchKind::Once || !has_room;
        worker.reported_races(outcome, &quiet, at_once)
    }

    /// Records the uses of memory that are bugs, by identity and the steps that lead there. False: somebody outside interfered.
    fn record_races(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        task: &Task,
        outcome: &Outcome,
        races: Vec<(u64, Vec<usize>)>,
    ) -> Result<bool, Failure> {
        for (identity, steps) in races {
            if self.lock().stop == Some(Stop::FirstBug) {
                break;
            }
            let candidate = Candidate::of_race(task, outcome, &steps);
            if !self.bug(worker, inspector, (BugKind::Race, identity), outcome, candidate)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the exploration because of something that is no bug of the program.
    fn stop_at(&self, obstacle: Bug) {
        self.lock().obstacle.get_or_insert(obstacle);
        self.end(Stop::FirstBug);
    }

    /// A bug that is new is looked at and written down. False: somebody outside interfered meanwhile.
    fn bug(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        (kind, identity): (BugKind, u64),
        outcome: &Outcome,
        candidate: Candidate,
    ) -> Result<bool, Failure> {
        let mut state = self.lock();
        if let Some(known) = state.found.get_mut(&identity) {
            known.offer(candidate);
            return Ok(true);
        }
        state.found.insert(identity, Found::new(identity, kind, candidate.clone()));
        drop(state);
        let first = worker.finding(outcome);
        let seen = self.confirm(worker, inspector, (kind, identity), &first, &candidate)?;
        if let Look::Disturbed(obstacle) = seen {
            self.lock().found.remove(&identity);
            self.stop_at(*obstacle);
            return Ok(false);
        }
        let mut state = self.lock();
        if state.stop == Some(Stop::FirstBug) {
            // Another worker was first.
            state.found.remove(&identity);
            return Ok(true);
        }
        if !self.setting.config.keep_going {
            state.end(Stop::FirstBug);
            self.halt.set();
        }
        let mut shortens = false;
        let goes_on = state.stop.is_none();
        let written = state.found.get_mut(&identity).map(|bug| {
            let now =
                goes_on && is_wanted_now(self.setting, inspector, kind) && bug.best.execution == candidate.execution;
            shortens = now && bug.try_shortening();
            match seen {
                Look::Same(shown) => bug.show(shown),
                Look::Otherwise(doubt) => bug.doubt(doubt),
                Look::Interrupted => bug.show_once(self.setting, first, &candidate),
                Look::Disturbed(_) => {}
            }
            bug.write(self.setting)
        });
        let failed = written.and_then(Result::err).map(|e| e.to_string());
        failed.into_iter().for_each(|text| state.counts.note(&text));
        drop(state);
        // At the first bug others are to end before that, and the end does it.
        if shortens {
            self.shorten(worker, inspector, (kind, identity), &candidate)?;
            if !outcome.is_untold() {
                // What is asked of the worker after this is about what it has run.
                worker.run(&replayable(&candidate.schedule, &outcome.trace))?;
            }
        }
        Ok(true)
    }

    /// Looks at an execution that has just shown a bug; where the time is over, for so long as [`CONFIRMING`].
    fn confirm(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        bug: (BugKind, u64),
        first: &Finding,
        candidate: &Candidate,
    ) -> Result<Look, Failure> {
        worker.grant(Some(Instant::now() + CONFIRMING));
        let seen = look(worker, inspector, self.setting, bug, Some(first), candidate);
        worker.grant(None);
        let late = last_moment(self.setting.until).map(|last| Instant::now().saturating_duration_since(last));
        if let Some(late) = late.filter(|late| !late.is_zero()) {
            self.lock().counts.note(&format!(
                "the time was over (--time) while a bug that had been found was run once more: that went on for {:.1} s longer (at most {} s)",
                (late + GRACE).as_secs_f64(),
                (CONFIRMING + GRACE).as_secs_f64().ceil()
            ));
        }
        seen
    }

    /// Shortens the schedule of a bug that has just been written down.
    fn shorten(
        &self,
        worker: &mut Worker,
        inspector: &mut Inspector,
        (kind, identity): (BugKind, u64),
        candidate: &Candidate,
    ) -> Result<(), Failure> {
        let shorter = look_shorter(worker, inspector, self.setting, (kind, identity), candidate)?;
        let Some(shown) = shorter else { return Ok(()) };
        let mut state = self.lock();
        let Some(bug) = state.found.get_mut(&identity).filter(|bug| !bug.is_doubtful()) else { return Ok(()) };
        bug.show(shown);
        let failed = bug.write(self.setting).err().map(|e| e.to_string());
        failed.into_iter().for_each(|text| state.counts.note(&text));
        Ok(())
    }

    /// An execution is over, and recorded. True: it is the first that was cut.
    fn finish(
        &self,
        place: usize,
        worker: &Worker,
        task: &Task,
        outcome: &Outcome,
        (shown, left): (Shown, Left),
    ) -> Result<bool, Failure> {
        let Left { ended, not_kept, unseen, passed: calls, back } = left;
        let mut state = self.lock();
        state.back.note(back);
        state.under_way -= 1;
        state.note_part(task, &outcome.trace, shown.is_new());
        let of_search = task.is_of_search(&outcome.trace);
        let first_cut = of_search && Unfinished::cut(&mut state.unfinished, task, outcome);
        let counts = &mut state.counts;
        if of_search {
            counts.executions += 1;
            counts.end(outcome.trace.end);
            counts.max_depth = counts.max_depth.max(length(outcome));
        }
        if not_kept {
            let kept = KEPT >> 20;
            counts.note(&format!("an execution printed more than {kept} MiB: what came after that is not kept"));
        }
        if of_search {
            counts.see(&outcome.trace.reasons(self.setting.config.search.reduces()));
        }
        for circle in state.locks.learn(&outcome.trace) {
            state.counts.circle(&worker.circle(&circle, &outcome.trace));
        }
        let counts = &mut state.counts;
        let overtaking = loads_overtake(&outcome.trace);
        if !overtaking.is_empty() {
            counts.see(&[Reason::Tso].into());
        }
        // What is drawn beside the search is no part of it.
        if of_search && self.setting.config.search.reduces() && outcome.trace.prints_what_came_later().is_some() {
            counts.see(&[Reason::Unwatched].into());
            counts.note(
                "a thread changed memory that another one was about to print while that waited for the lock of its stream (fwrite, printf, ..): what is printed when that comes earlier may not have been explored (--search naive explores it)",
            );
        }
        for pair in &overtaking {
            worker.overtaking(pair).iter().for_each(|text| counts.note(text));
        }
        if !shown.words.is_empty() && !state.sharing.has_room() {
            // These will be no objects.
            state.counts.see(&[Reason::Races].into());
        }
        if shown.names.is_empty() {
            // Where an object turned out to be shared, what was done to it before orders nothing yet: the search starts over.
            let races = worker.races(outcome);
            state.sharing.note_trespasses(worker.trespasses(outcome));
            match state.sharing.has_room() {
                true => state.sharing.note_races(races),
                false => races.iter().for_each(|text| state.counts.race(text)),
            }
        }
        let will_start_over = state.sharing.starts_over();
        let counts = &mut state.counts;
        // What the code of these did is seen when the search has started over.
        if let Some(text) = unseen.filter(|_| shown.late.is_empty() || !will_start_over) {
            counts.see(&[Reason::Unwatched].into());
            counts.note(&text);
        }
        if let Some(name) = worker.own_functions() {
            counts.see(&[Reason::OwnFunctions].into());
            counts.note(&format!(
                "{name} came after the start: where it has a function that --toss names, that is as it was"
            ));
        }
        counts.tosses |= worker.tosses_called();
        counts.used(task.number, worker.watchlist());
        let with_root = place == 0 && state.passed_earlier.is_empty();
        let passed = &mut state.passed[place];
        passed.clear();
        passed.extend(calls);
        if with_root {
            passed.iter_mut().zip(worker.passed_before()).for_each(|(n, before)| *n = n.saturating_add(*before));
        }
        if let Some(ended) = ended.filter(|_| of_search) {
            state.outcomes.note(task.schedule.ticket, ended, Candidate::new(task, outcome));
        }
        let since = state.started_at.elapsed().as_secs_f64();
        if let Some(covering) = &mut state.covering {
            covering.see(worker, since);
        }
        if of_search {
            state.search.done(task.schedule.ticket, &outcome.trace);
            state.settle();
        }
        state.sharing.learn(shown);
        state.report_progress();
        state.save_if_due(self.setting);
        if state.idle > 0 {
            self.changed.notify_all();
        }
        Ok(first_cut)
    }

    /// Looks at the first execution that was cut, and tells at once what loop it was cut in, if it was: others will be as well.
    fn look_at_first_cut(&self, worker: &mut Worker, inspector: &mut Inspector) {
        // One alone prints, and changes files, once.
        if self.setting.config.search == SearchKind::Once {
            return;
        }
        let Some(mut unfinished) = self.lock().unfinished.clone() else { return };
        unfinished.look(worker, inspector);
        let mut state = self.lock();
        if let Some(text) = unfinished.told() {
            state.progress.tell(&text);
            state.counts.note(&text);
        }
        // Another one may have taken its place meanwhile.
        let is_there = |there: &Unfinished| there.execution() == unfinished.execution();
        if state.unfinished.as_ref().is_some_and(is_there) {
            state.unfinished = Some(unfinished);
        }
    }

    /// What is left in the worker by what it has just run, before it runs anything else to look at that.
    fn left_by(&self, worker: &Worker, outcome: &Outcome) -> Result<Left, Failure> {
        Ok(Left {
            ended: self.ended(worker, outcome)?,
            not_kept: self.setting.config.search != SearchKind::Once && worker.output.not_kept()? > 0,
            unseen: worker.unseen_memory(),
            passed: worker.passed().collect(),
            back: worker.goes_back(),
        })
    }

    /// A program that prints something else under another schedule is worth a look.
    fn ended(&self, worker: &Worker, outcome: &Outcome) -> Result<Option<Ended>, Failure> {
        let whole = outcome.ending == Ending::Modelled && outcome.trace.end == End::FINISHED;
        if !whole || self.setting.config.search == SearchKind::Once {
            return Ok(None);
        }
        Ok(Some(Ended::of(worker)?))
    }

    /// A loop waits for what it has read of memory that is an object. What else it reads turns out to be one, too: only the search that starts over
    /// knows whether it waits.
    fn will_tell(&self, outcome: &Outcome) -> bool {
        let waits = |seen: &Seen| seen.act.op.kind == Kind::MEM_WAIT;
        outcome.trace.end == End::DEADLOCK
            && self.setting.config.search != SearchKind::Once
            && outcome.trace.last.iter().any(waits)
            && self.lock().sharing.has_room()
    }
}
