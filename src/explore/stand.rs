//! Standing at any step of a scenario: what is to be seen there, and going on another way from there.
//!
//! An execution stands still where the schedule's prefix is over, and is looked at there. So to stand at step N is to run the first N steps
//! again, and to go back is to run fewer of them. What was seen is kept for a while.
//!
//! To choose is to put another choice behind the steps that were made: the default policy goes on from there (who runs goes on while it can), to
//! the end, and what comes is the new path. Nothing is claimed of it but that it is one execution.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use vsrun_model::arena::{Choice, Seen, MAX_PREFIX};
use vsrun_model::End;

use super::failure::Failure;
use super::found::people_of;
use super::replay::{difference, input_of, load, schedule_of, spec_of, undisturbed};
use super::standing::{Path, State};
use crate::config::{Explain, Format};
use crate::finding::{BugKind, Ending, Explained, Finding, People};
use crate::report::shell_line;
use crate::runtime::streams::Input;
use crate::runtime::{Inspector, Worker};
use crate::scenario::{Found, Scenario, ScenarioStep, Shown};
use crate::schedule::Schedule;

/// A path that was chosen has so many times the steps of the scenario, and so many more; then it is cut.
const LONGER: usize = 10;
const MORE: usize = 1000;
/// So long it is followed.
const FOLLOWED: Duration = Duration::from_secs(10);
/// States that are kept.
const KEPT: usize = 256;
/// Steps, the last ones, of which it is found where they are made when a scenario is opened: some 0.1 ms each.
const TOLD: u64 = 20_000;
/// The same around a choice; of others it is known once one stands before them.
const TOLD_OF_CHOSEN: u64 = 500;

/// A scenario to stand in.
pub struct Stand {
    scenario: Scenario,
    file: PathBuf,
    /// The program reads from a file that was given.
    is_fed: bool,
    worker: Worker,
    inspector: Inspector,
    /// What was seen at the end of the path.
    found: Finding,
    path: Path,
    choices: Vec<Choice>,
    at: usize,
    states: BTreeMap<usize, Arc<State>>,
}

/// What the program reads from its standard input: `input`, which it needs to be given where it was no empty one.
fn input(scenario: &Scenario, input: Option<&FilePath>) -> Result<Input, Failure> {
    let Some(path) = input else {
        return match scenario.options.stdin.as_str() {
            "null" => input_of(scenario),
            _ => Err(Failure::environment(
                "the scenario's program had a standard input, which is needed for the commands here: give it as a file with --input FILE",
            )),
        };
    };
    let open = File::open(path).and_then(|file| Ok((file.metadata()?.is_file(), file)));
    match open {
        Ok((true, file)) => Ok(Input::of_file(file)?),
        Ok((false, _)) => {
            Err(Failure::environment(format!("{} is no regular file, so it cannot be read again", path.display())))
        }
        Err(e) => Err(Failure::environment(format!("{} cannot be read: {e}", path.display()))),
    }
}

impl Stand {
    /// Runs the scenario of a file to its end, and stands there. `trust`: whoever wrote it. `given`: the file that the program reads from its
    /// standard input.
    ///
    /// # Errors
    /// Those of [`super::replay()`]; the replay came to something else than the scenario records; there are too many steps.
    pub fn open(file: &FilePath, trust: bool, given: Option<&FilePath>) -> Result<Stand, Failure> {
        let (scenario, _) = load(file, trust, false)?;
        if scenario.options.real_files {
            return Err(Failure::environment(
                "in the scenario files are really changed (--files real), which is not to be done many times",
            ));
        }
        let mut spec = spec_of(&scenario, &[]);
        if matches!(scenario.bug.kind, BugKind::Cut | BugKind::Race) {
            // That is where this path ends; others may go on.
            spec.max_depth = u64::MAX;
        }
        let mut worker = Worker::start(spec, input(&scenario, given)?, None)?;
        let mut inspector = Inspector::default();
        inspector.know_root(worker.root_pid());
        let race = (scenario.bug.kind == BugKind::Race).then_some(scenario.bug.identity);
        let schedule = schedule_of(&scenario);
        // All steps are wanted, not the last alone.
        let most = match scenario.bug.kind {
            BugKind::Cut | BugKind::Race => scenario.options.max_depth,
            _ => None,
        };
        let schedule = Schedule { depth: None, most, ..schedule };
        worker.tell_last(Some(TOLD));
        let (found, trace) = worker.examine_all(&mut inspector, &schedule, race)?;
        worker.tell_last(Some(0));
        undisturbed(&found)?;
        if let Some(line) = difference(&scenario, &found) {
            return Err(Failure::own(line));
        }
        if !found.is_repeated_by_its_steps() {
            return Err(Failure::environment(format!(
                "the scenario has {} steps, too many to stand at each of them ({MAX_PREFIX} at most)",
                found.transitions()
            )));
        }
        let choices = trace.choices(trace.steps.len());
        let mut path = Path::new(&found, shell_line(&scenario.program.argv));
        path.notes.extend(crate::incomplete::uncontrolled(scenario.options.uncontrolled));
        let at = choices.len();
        let (file, is_fed, states) = (file.to_path_buf(), given.is_some(), BTreeMap::new());
        let mut stand = Stand { scenario, file, is_fed, worker, inspector, found, path, choices, at, states };
        stand.keep_end(&trace.last)?;
        Ok(stand)
    }

    /// The end of the path is the state that was looked at last.
    fn keep_end(&mut self, last: &[Seen]) -> Result<(), Failure> {
        let state = self.seen(&self.found, self.choices.len(), last)?;
        self.keep(state);
        Ok(())
    }

    /// What was seen of the execution last run; `last`: what its threads are at.
    fn seen(&self, found: &Finding, at: usize, last: &[Seen]) -> Result<State, Failure> {
        let mut printed = Vec::new();
        self.worker.output.copy_end_to(&mut printed)?;
        let enabled = self.worker.enabled();
        Ok(State::new(found, &People::of(&self.found), at, (&enabled, last), &printed))
    }

    /// The execution that one stands in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that was opened.
    pub fn file(&self) -> &FilePath {
        &self.file
    }

    /// Steps that were made where one stands.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes to after step `n`; 0: to before the first one.
    ///
    /// # Errors
    /// There is no such step, or the steps could not be run; then one stands where one stood.
    pub fn go(&mut self, n: usize) -> Result<Arc<State>, Failure> {
        let all = self.choices.len();
        if n > all {
            return Err(Failure::environment(format!("there is no step {n}: the last one is {all}")));
        }
        let state = match self.states.get(&n) {
            Some(state) => Arc::clone(state),
            None => {
                let state = self.look_at(n)?;
                self.keep(state)
            }
        };
        self.at = n;
        Ok(state)
    }

    fn look_at(&mut self, n: usize) -> Result<State, Failure> {
        // A bound on what comes behind the last choice is none on what one stands at.
        let ends = n < self.choices.len() || self.found.end == End::DEPTH;
        let schedule = Schedule { prefix: self.choices[..n].to_vec(), ends, ..Schedule::default() };
        // What a write to vsrun's memory ends is the end of the path.
        self.worker.guard_looks(!ends);
        let seen = self.worker.examine_all(&mut self.inspector, &schedule, None);
        self.worker.guard_looks(true);
        let (found, trace) = seen?;
        undisturbed(&found)?;
        if ends && (found.end != End::DEPTH || found.ending != Ending::Modelled || found.steps.len() != n) {
            return Err(Failure::own(format!(
                "the first {n} steps, run again, came to something else: {} after {} steps; the program depends on something that vsrun \
                 does not control, or vsrun is wrong",
                found.line(),
                found.steps.len()
            )));
        }
        self.seen(&found, n, &trace.last)
    }

    /// Keeps what was seen; of many those that are farthest away go.
    fn keep(&mut self, state: State) -> Arc<State> {
        let (at, state) = (state.at, Arc::new(state));
        if let Some(step) = self.path.steps.get_mut(at).filter(|step| step.place.is_none()) {
            step.place = state.thread(&step.thread).and_then(|thread| thread.place.clone());
        }
        self.states.insert(at, Arc::clone(&state));
        while self.states.len() > KEPT {
            let (first, last) = (self.states.keys().next().copied(), self.states.keys().next_back().copied());
            let far = [first, last].into_iter().flatten().max_by_key(|n| n.abs_diff(at));
            if let Some(n) = far {
                self.states.remove(&n);
            }
        }
        state
    }

    /// What is to be seen where one stands.
    ///
    /// # Errors
    /// The steps could not be run.
    pub fn state(&mut self) -> Result<Arc<State>, Failure> {
        self.go(self.at)
    }

    /// Where one stands, lets `thread` (by its path of creation or its name) make the next step, in alternative `value`. What comes after it is
    /// left to the default policy. If it is what the path does anyway, that is a step forward. True: the path was left.
    ///
    /// # Errors
    /// It cannot make one, or not in that way; the execution could not be run. Then nothing has changed.
    pub fn choose(&mut self, thread: &str, value: u32) -> Result<bool, Failure> {
        let state = self.state()?;
        let at = state
            .thread(thread)
            .ok_or_else(|| Failure::environment(format!("there is no thread {thread} after step {}", self.at)))?;
        if value as usize >= at.ways.len() {
            return Err(Failure::environment(self.why_not(&state, at, value)));
        }
        let mut choice = at.choice;
        choice.value = value;
        if self.choices.get(self.at) == Some(&choice) {
            self.go(self.at + 1)?;
            return Ok(false);
        }
        let mut prefix = self.choices[..self.at].to_vec();
        prefix.push(choice);
        self.follow(prefix)?;
        let made = self.at + 1;
        self.go(made)?;
        Ok(true)
    }

    fn why_not(&self, state: &State, at: &super::standing::At, value: u32) -> String {
        let (name, lane, n) = (&at.lane.name, &at.lane, self.at);
        match at.ways.len() {
            0 if state.choices().is_empty() && n == self.choices.len() => {
                format!("nobody makes another step after step {n}: {}", self.path.end.line)
            }
            0 if !lane.waits_for.is_empty() => {
                format!("{name} cannot go on after step {n}: it waits for {}", lane.waits_for.join("; "))
            }
            0 => format!("{name} cannot make the next step after step {n}: it is {}", lane.status),
            1 => format!("{name} can go on in one way alone, alternative 0; {value} was asked for"),
            all => format!("{name} can go on in {all} ways, alternatives 0 to {}; {value} was asked for", all - 1),
        }
    }

    /// Runs these choices and what the default policy does after them: that is the path from now on.
    fn follow(&mut self, prefix: Vec<Choice>) -> Result<(), Failure> {
        let most = (self.choices.len().max(prefix.len()) * LONGER + MORE).min(MAX_PREFIX) as u64;
        let schedule = Schedule { prefix: prefix.clone(), most: Some(most), ..Schedule::default() };
        self.worker.tell_last(Some(TOLD_OF_CHOSEN));
        self.worker.break_off(Instant::now().checked_add(FOLLOWED));
        let seen = self.worker.examine_all(&mut self.inspector, &schedule, None);
        self.worker.break_off(None);
        self.worker.tell_last(Some(0));
        let (mut found, mut trace) = seen?;
        let mut notes = self
            .path
            .notes
            .iter()
            .take(usize::from(self.scenario.options.uncontrolled != 0))
            .cloned()
            .collect::<Vec<_>>();
        if found.ending == Ending::Interrupted && !self.worker.is_halted() {
            let ends = Schedule { prefix: prefix.clone(), ends: true, ..Schedule::default() };
            (found, trace) = self.worker.examine_all(&mut self.inspector, &ends, None)?;
            notes.push(format!(
                "what comes after the choice did not come to an end within {} s: the path ends there",
                FOLLOWED.as_secs()
            ));
        } else if found.end == End::DEPTH {
            let steps = trace.steps.len();
            notes.push(format!("the path was cut after {steps} steps: what the default policy does came to no end"));
        }
        undisturbed(&found)?;
        if found.end == End::MISMATCH || trace.steps.len() < prefix.len() {
            return Err(Failure::own(format!("that choice was not made: {}", found.line())));
        }
        if self.worker.shows_more_sharing() {
            notes.push(
                "on this path threads share more than was known when the scenario was found: operations on that are no steps here".into(),
            );
        }
        let left = self.path.left.unwrap_or(usize::MAX).min(prefix.len() - 1);
        self.path = Path { left: Some(left), notes, ..Path::new(&found, std::mem::take(&mut self.path.program)) };
        self.choices = trace.choices(trace.steps.len());
        self.found = found;
        // What people call threads depends on all of the path.
        self.states.clear();
        self.keep_end(&trace.last)
    }

    /// What [`super::explain()`] finds out about the scenario of the file, whatever was chosen since.
    ///
    /// # Errors
    /// Those of [`super::explain()`]; the program reads from a file.
    pub fn explain(&self, samples: u64, time: Duration) -> Result<Explained, Failure> {
        if self.is_fed {
            return Err(Failure::environment("a scenario whose program reads from a file (--input) is not explained"));
        }
        let (file, seed, trust, format) = (self.file.clone(), 0, true, Format::Json);
        let args = Explain { samples, time, seed, trust, format, file };
        // A world belongs to the thread that has started it.
        let explained = std::thread::spawn(move || super::explain(&args)).join();
        explained.unwrap_or_else(|_| Err(Failure::own("vsrun bug: explaining has failed")))
    }

    /// Writes the path as a scenario, to a new file `to`, or to one with the first free name in the working directory.
    ///
    /// # Errors
    /// It cannot be written, or its end is none that a replay can come to.
    pub fn save(&self, to: Option<&FilePath>) -> Result<PathBuf, Failure> {
        let scenario = self.scenario()?;
        let written = match to {
            Some(path) => scenario.write_new(path).map(|()| path.to_path_buf()),
            None => scenario.write(FilePath::new(".")),
        };
        written.map_err(|e| {
            let path = to.map_or_else(|| e.dir.display().to_string(), |path| path.display().to_string());
            Failure::environment(format!("{path} cannot be written: {}", e.source))
        })
    }

    /// The path as a scenario.
    fn scenario(&self) -> Result<Scenario, Failure> {
        if self.path.left.is_none() {
            return Ok(self.scenario.clone());
        }
        let found = &self.found;
        let (steps, line) = (found.steps.len(), found.line());
        let peaceful = matches!(found.end, End::FINISHED | End::WAITS_OUTSIDE | End::DEPTH);
        let bug = match found.kind {
            Some(kind) if kind.is_of_program() => Shown { kind, summary: line, identity: found.identity },
            None if peaceful && found.ending == Ending::Modelled => {
                let (kind, summary) = match found.end {
                    End::DEPTH => (BugKind::Cut, format!("an execution was cut off after {steps} transitions")),
                    _ => (BugKind::Outcome, line),
                };
                // What it prints is not recorded.
                Shown { kind, summary, identity: 0 }
            }
            _ => {
                return Err(Failure::environment(format!(
                    "the path is not saved: its end is none that a replay can come to ({line})"
                )))
            }
        };
        let mut options = self.scenario.options.clone();
        options.max_depth = match (bug.kind, self.scenario.bug.kind) {
            (BugKind::Cut, _) => Some(steps as u64),
            (_, BugKind::Cut | BugKind::Race) => None,
            _ => options.max_depth,
        };
        Ok(Scenario {
            options,
            bug,
            found: Found { search: "step".into(), execution: 1, shortened: None },
            people: people_of(found),
            steps: found.steps.iter().map(|step| ScenarioStep::new(step, found)).collect(),
            then: None,
            ..self.scenario.clone()
        })
    }
}
