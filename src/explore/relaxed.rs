//! Replays of a scenario on a program that has changed since (`replay --relaxed`): its steps are followed by thread, kind and object as far
//! as they are there.
//!
//! Every operation is a transition then: which objects are shared was known by addresses of the old program. So the scenario's steps are
//! some of those that the execution makes, unless the program has changed at them. What is wanted next is decided where an execution of
//! the steps so far came to something else, and the next one goes on from there:
//! * the thread is at another operation: it makes that, unless it is one that is wanted of it later; then what is wanted before is given up;
//! * the thread cannot go on: others do, in the order of the scenario, and its step is wanted later;
//! * the thread is not there: its steps are given up.
//!
//! Names of objects may have changed, too. Where following by name does not come to the bug, it is tried by thread and kind alone.

use std::time::{Duration, Instant};

use vsrun_model::arena::Choice;
use vsrun_model::{End, Kind, Uid};

use super::failure::Failure;
use crate::finding::{BugKind, Ending, Finding, ThreadStatus, ThreadView};
use crate::report::mismatch::came;
use crate::runtime::{tracee, Inspector, Worker};
use crate::scenario::{Scenario, ScenarioStep};
use crate::schedule::Schedule;

/// So long a scenario is followed, by each way.
const LONGEST: Duration = Duration::from_secs(60);
/// So many of a thread's next steps may be missing in the program.
const AHEAD: usize = 8;

/// What following a scenario came to.
#[derive(Debug)]
pub struct Followed {
    /// How it ended: a bug, or not.
    pub found: Finding,
    /// Steps of the scenario that were made.
    pub made: usize,
    /// All of them.
    pub steps: usize,
    /// Operations that were made on the way and are none of its steps.
    pub others: usize,
    /// The first step (from 0) that could not be made where it was to be, and why.
    pub left: Option<(usize, String)>,
    /// The bug that the scenario records.
    pub expected: (BugKind, String, u64),
    /// It orders uses of memory, which are known by addresses of the old program and were not followed.
    pub memory: bool,
    /// It took too long and was given up: how it ended is how the program goes on from there.
    pub given_up: bool,
}

impl Followed {
    /// The bug that the scenario records has come; `None`: one of its kind has, and it looks different.
    pub fn is_there(&self) -> Option<bool> {
        let (kind, line, identity) = &self.expected;
        match self.found.kind {
            Some(came) if came == *kind => {
                // Scenarios of older versions call threads by their paths of creation alone.
                let lines = [self.found.line(), self.found.summary.render(&self.found)];
                (self.found.identity == *identity || lines.contains(line)).then_some(true)
            }
            _ => Some(false),
        }
    }

    /// What it came to, in a line.
    pub fn line(&self) -> String {
        let found = self.found.line();
        let (kind, expected, _) = &self.expected;
        let steps = match self.others {
            0 => format!("{} of {} steps were followed", self.made, self.steps),
            n => format!("{} of {} steps were followed, with {n} other operations between them", self.made, self.steps),
        };
        if self.found.kind == Some(*kind) {
            return match self.is_there() {
                Some(_) => format!("the bug is still there: {}: {found} ({steps})", kind.name()),
                None => format!(
                    "a bug of that kind is still there: {}: {found}; the scenario records: {expected} ({steps})",
                    kind.name()
                ),
            };
        }
        let end = match self.found.kind {
            Some(other) => format!("another bug came: {}: {found}", other.name()),
            None => found,
        };
        if self.given_up {
            return format!(
                "nothing can be told: the program has changed too much to be followed ({steps}); explore it again"
            );
        }
        if self.memory {
            return format!(
                "the bug did not come, which tells nothing: the scenario orders uses of memory, which are known by addresses of the old \
                 program and were not followed; explore it again ({steps}; {end})"
            );
        }
        let where_left = match &self.left {
            Some((at, why)) => format!("at step {} of {}: {why}", at + 1, self.steps),
            None => format!("all {} steps were made", self.steps),
        };
        format!("it is gone: {where_left}; {end} ({steps}). Other schedules were not tried: explore it again")
    }
}

/// Follows a scenario, whose program has changed, with a worker that takes every operation for a transition.
///
/// # Errors
/// It has no steps; an execution could not be looked at; vsrun was asked to end.
pub(super) fn follow(scenario: &Scenario, worker: &mut Worker) -> Result<Followed, Failure> {
    if scenario.then.is_some() {
        let why = "its steps were too many to be written down, so a program that has changed cannot follow them; explore it again";
        return Err(Failure::own(why));
    }
    let mut inspector = Inspector::default();
    let by_name = Guide::new(scenario, true).follow(worker, &mut inspector)?;
    if by_name.found.kind == Some(scenario.bug.kind) {
        return Ok(by_name);
    }
    let by_kind = Guide::new(scenario, false).follow(worker, &mut inspector)?;
    let better = by_kind.found.kind == Some(scenario.bug.kind) || by_kind.made > by_name.made;
    // The worker is left with the execution that is shown.
    match better {
        true => Ok(by_kind),
        false => Guide::new(scenario, true).follow(worker, &mut inspector),
    }
}

/// How far a scenario has been followed.
struct Guide<'s> {
    scenario: &'s Scenario,
    /// Objects have to have the same names.
    by_name: bool,
    /// What is to be made first.
    prefix: Vec<Choice>,
    /// Steps that are still wanted, by index.
    wanted: Vec<usize>,
    made: usize,
    others: usize,
    left: Option<(usize, String)>,
    memory: bool,
}

impl<'s> Guide<'s> {
    fn new(scenario: &'s Scenario, by_name: bool) -> Guide<'s> {
        let uses = |step: &ScenarioStep| step.op.uses_memory();
        let (memory, wanted): (Vec<usize>, Vec<usize>) =
            (0..scenario.steps.len()).partition(|&n| uses(&scenario.steps[n]));
        let memory = !memory.is_empty();
        Guide { scenario, by_name, prefix: Vec::new(), wanted, made: 0, others: 0, left: None, memory }
    }

    fn step(&self, n: usize) -> &'s ScenarioStep {
        &self.scenario.steps[n]
    }

    fn follow(mut self, worker: &mut Worker, inspector: &mut Inspector) -> Result<Followed, Failure> {
        let since = Instant::now();
        loop {
            let all = self.wanted.iter().map(|&n| self.step(n).choice());
            let prefix: Vec<Choice> = self.prefix.iter().copied().chain(all).collect();
            let found = look(worker, inspector, Schedule { prefix, ends: true, ..Schedule::default() })?;
            let agreed = self.agree(&found);
            let ended = found.end != End::MISMATCH || found.ending != Ending::Modelled;
            if agreed && ended {
                break;
            }
            if !agreed {
                // Another object: the operation there is made as one that is not wanted.
                self.take_other(&found);
            } else {
                self.go_on(&found);
            }
            if since.elapsed() > LONGEST {
                let prefix = std::mem::take(&mut self.prefix);
                let found = look(worker, inspector, Schedule { prefix, ..Schedule::default() })?;
                return Ok(self.end(found, true));
            }
        }
        let prefix = std::mem::take(&mut self.prefix);
        let found = look(worker, inspector, Schedule { prefix, ..Schedule::default() })?;
        Ok(self.end(found, false))
    }

    fn end(self, found: Finding, given_up: bool) -> Followed {
        let bug = &self.scenario.bug;
        let over = |&n: &usize| {
            (n, format!("{} was to make {}; the execution was over before", self.step(n).thread, self.step(n).text))
        };
        let left = self.left.clone().or_else(|| self.wanted.first().map(over));
        Followed {
            found,
            made: self.made,
            steps: self.scenario.steps.len(),
            others: self.others,
            left,
            expected: (bug.kind, bug.summary.clone(), bug.identity),
            memory: self.memory,
            given_up,
        }
    }

    /// Takes the wanted steps that the execution has made. False: it then made one on another object.
    fn agree(&mut self, found: &Finding) -> bool {
        let mut taken = 0;
        let mut agreed = true;
        for step in found.steps.iter().skip(self.prefix.len()).take(self.wanted.len()) {
            let wanted = self.step(self.wanted[taken]);
            if !self.is_same(wanted, &step.text.render(found)) {
                agreed = false;
                break;
            }
            taken += 1;
        }
        let made: Vec<usize> = self.wanted.drain(..taken).collect();
        self.prefix.extend(made.iter().map(|&n| self.scenario.steps[n].choice()));
        self.made += taken;
        agreed
    }

    /// The names of the objects are the same, as far as they are names and not addresses, and as far as that matters.
    fn is_same(&self, wanted: &ScenarioStep, text: &str) -> bool {
        let call = |text: &str| text.split_once(')').map_or(text.to_string(), |(call, _)| call.to_string());
        let is_address = |text: &str| text.contains("0x");
        !self.by_name || is_address(&wanted.text) || is_address(text) || call(&wanted.text) == call(text)
    }

    /// The execution made an operation on another object than is wanted: it is made, and the wanted one comes later.
    fn take_other(&mut self, found: &Finding) {
        if let Some(step) = found.steps.get(self.prefix.len()) {
            self.prefix.push(Choice::new(step.thread, step.value, step.op.kind));
            self.others += 1;
        }
    }

    /// Decides what comes next where the execution stands, which is not what is wanted.
    fn go_on(&mut self, found: &Finding) {
        let Some(&first) = self.wanted.first() else { return };
        let step = self.step(first);
        let thread = thread_of(found, step.thread);
        match thread {
            Some(thread) if is_able(thread) => {
                let ahead = self.wanted.iter().filter(|&&n| self.step(n).thread == step.thread).take(AHEAD);
                let later = ahead.copied().find(|&n| self.is_at(thread, self.step(n), found));
                match later {
                    // It could be made, but not in that alternative.
                    Some(n) if n == first => {
                        self.leave(first, found);
                        self.wanted.remove(0);
                        self.others += 1;
                        self.prefix.push(Choice::new(step.thread, 0, step.op));
                    }
                    // The program does not have those before it any more.
                    Some(n) => {
                        self.leave(first, found);
                        let gone = |m: usize| m < n && self.scenario.steps[m].thread == step.thread;
                        self.wanted.retain(|&m| !gone(m));
                    }
                    None => self.make(thread),
                }
            }
            Some(thread) if thread.status != ThreadStatus::Exited => {
                // Who may go on is asked in the order of the scenario.
                self.leave(first, found);
                let others = self.wanted.iter().filter_map(|&n| thread_of(found, self.step(n).thread));
                let next = others.chain(&found.threads).find(|thread| is_able(thread));
                let Some(next) = next else { return self.wanted.clear() };
                let place = self.wanted.iter().position(|&n| self.step(n).thread == next.uid);
                match place.filter(|&place| self.is_at(next, self.step(self.wanted[place]), found)) {
                    Some(place) => {
                        // It comes first now.
                        let n = self.wanted.remove(place);
                        self.wanted.insert(0, n);
                        if self.step(n).value >= alternatives(next) {
                            self.wanted.remove(0);
                            self.make(next);
                        }
                    }
                    None => self.make(next),
                }
            }
            _ => {
                self.leave(first, found);
                self.wanted.retain(|&n| self.scenario.steps[n].thread != step.thread);
            }
        }
    }

    /// The thread makes what it is at, which is not wanted.
    fn make(&mut self, thread: &ThreadView) {
        let kind = thread.pending.as_ref().map_or(Kind::NONE, |pending| pending.op.kind);
        self.prefix.push(Choice::new(thread.uid, 0, kind));
        self.others += 1;
    }

    /// Whether the thread is at that step.
    fn is_at(&self, thread: &ThreadView, step: &ScenarioStep, found: &Finding) -> bool {
        let pending = thread.pending.as_ref().filter(|pending| pending.op.kind == step.op);
        pending.is_some_and(|pending| self.is_same(step, &pending.text.render(found)))
    }

    /// Notes where the scenario was left first.
    fn leave(&mut self, n: usize, found: &Finding) {
        if self.left.is_none() {
            let step = self.step(n);
            let text = if step.text.is_empty() { step.op.name() } else { &step.text };
            self.left = Some((n, format!("{} was to make {text}; {}", step.thread, came(step, found))));
        }
    }
}

fn thread_of(found: &Finding, uid: Uid) -> Option<&ThreadView> {
    found.threads.iter().rev().find(|thread| thread.uid == uid)
}

fn alternatives(thread: &ThreadView) -> u32 {
    thread.pending.as_ref().map_or(0, |pending| pending.alternatives)
}

fn is_able(thread: &ThreadView) -> bool {
    alternatives(thread) > 0
}

fn look(worker: &mut Worker, inspector: &mut Inspector, schedule: Schedule) -> Result<Finding, Failure> {
    let found = worker.examine(inspector, &schedule, None)?;
    if found.ending == Ending::Interrupted || tracee::interrupted() {
        return Err(Failure::interrupted("interrupted, before the scenario was followed to its end"));
    }
    if found.ending.is_environments() {
        return Err(Failure::environment(format!("environment: {}", found.line())));
    }
    Ok(found)
}
