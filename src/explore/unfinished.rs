//! Executions that did not reach their end: cut at the depth bound or for want of room, or broken off when the time was over. One of them
//! is shown where none reached its end, since nothing else was seen of the program then: where its threads were, and what went round.

use std::borrow::Cow;
use std::sync::Arc;

use vsrun_model::arena::Choice;
use vsrun_model::progress::{Advance, Progress};
use vsrun_model::End;

use super::executions::{length, replayable, Task};
use super::found::{scenario_of, Candidate};
use super::setting::Setting;
use crate::finding::{Bug, BugKind, Ending, Finding, People};
use crate::report::rounds::{is_loop, rounds};
use crate::runtime::{Inspector, Outcome, Worker};
use crate::scenario::{Scenario, ScenarioStep, Then, WriteError};
use crate::schedule::Schedule;
use crate::trace::Idle;

/// More threads than this are looked at in the end only, if at all: each has a stack.
const MANY: usize = 64;

/// An execution that did not reach its end.
#[derive(Clone, Debug)]
pub(super) struct Unfinished {
    candidate: Candidate,
    /// The time was over, or vsrun was asked to end; otherwise it was cut.
    broken_off: bool,
    /// There was no room for more of something.
    room: bool,
    /// It made no progress.
    idle: Option<Idle>,
    /// What was seen there, once it has been looked at.
    seen: Option<Box<Finding>>,
}

impl Unfinished {
    /// An execution is over. If it was cut, it takes the place of one that was broken off, or was started later. True: it is the first
    /// that was cut, at the depth bound, and to look at it does not take long.
    pub fn cut(place: &mut Option<Unfinished>, task: &Task, outcome: &Outcome) -> bool {
        let is_cut = matches!(outcome.trace.end, End::DEPTH | End::ROOM) && length(outcome) > 0;
        let first = place.as_ref().is_none_or(|there| there.broken_off);
        if is_cut && (first || place.as_ref().is_some_and(|there| there.candidate.execution > task.number)) {
            *place = Some(Unfinished::new(task, outcome, false));
        }
        is_cut && first && outcome.trace.end == End::DEPTH && outcome.trace.last.len() <= MANY
    }

    /// Its number, from 1.
    pub fn execution(&self) -> u64 {
        self.candidate.execution
    }

    /// Looks at where it was cut.
    pub fn look(&mut self, worker: &mut Worker, inspector: &mut Inspector) {
        let seen = worker.use_objects(&self.candidate.objects).ok();
        let seen = seen.and_then(|()| worker.examine(inspector, &self.candidate.schedule, None).ok());
        self.seen = seen.filter(|found| found.end == End::DEPTH && found.ending == Ending::Modelled).map(shown);
    }

    /// A line about the loop that goes on there, if there is one: it will be met again and again.
    pub fn told(&self) -> Option<String> {
        let lines = self.seen.as_ref().map(|found| &found.rounds)?;
        let transitions = self.candidate.transitions;
        let (first, rest) = lines.split_first().filter(|_| is_loop(lines))?;
        let execution = self.candidate.execution;
        Some(format!("execution {execution} was cut off after {transitions} transitions: {first} {}", rest.join("; ")))
    }

    /// An execution that was broken off.
    pub fn broken_off(task: &Task, outcome: &Outcome) -> Unfinished {
        Unfinished::new(task, outcome, true)
    }

    /// It was broken off, and this was seen there: the longest one of those stands for them.
    pub fn stands_in(self, place: &mut Option<Unfinished>, seen: Finding) {
        let stays = |there: &Unfinished| !there.broken_off || there.candidate.transitions >= self.candidate.transitions;
        if !place.as_ref().is_some_and(stays) {
            // To get there again takes as long as it took, and there is no time left.
            *place = Some(Unfinished { seen: Some(shown(seen)), ..self });
        }
    }

    fn new(task: &Task, outcome: &Outcome, broken_off: bool) -> Unfinished {
        let transitions = length(outcome);
        // What sleeps has a part in what the policy does, and no scenario has it.
        let schedule = match task.schedule.sleep.is_empty() {
            true => Schedule { record: false, ..task.schedule.clone() },
            false => replayable(&task.schedule, &outcome.trace),
        };
        let schedule = Schedule { blind: false, depth: Some(transitions), ..schedule };
        let (execution, objects) = (task.number, Arc::clone(&task.objects));
        let candidate =
            Candidate { schedule, transitions, execution, objects, restarts: task.restarts, ..Candidate::default() };
        Unfinished {
            candidate,
            broken_off,
            room: outcome.trace.end == End::ROOM,
            idle: outcome.trace.idle.clone(),
            seen: None,
        }
    }

    /// The report on it, with a scenario in `setting`'s directory; `timed`: what was broken off was so since the time was over.
    ///
    /// # Errors
    /// The scenario could not be written: with the report without it.
    pub fn report(mut self, setting: &Setting, timed: bool) -> (Bug, Result<(), WriteError>) {
        let Candidate { transitions, execution, .. } = self.candidate;
        let why = match (self.broken_off, timed) {
            (true, true) => "when the time was over (--time)",
            (true, false) => "when vsrun was asked to end",
            _ if self.room => "where there was no room for more (see the notes)",
            _ => "before its end (--max-depth)",
        };
        let why = match &self.idle {
            Some(idle) => {
                Cow::Owned(format!("before its end: {} (--max-idle)", without_progress(idle, self.seen.as_deref())))
            }
            None => Cow::Borrowed(why),
        };
        let summary = format!("an execution was cut off after {transitions} transitions, {why}");
        let mut bug = Bug { kind: BugKind::Cut, ..Bug::error(summary, execution, transitions) };
        bug.finding = self.seen.take();
        let written = self.scenario(setting, &bug).write(&setting.config.scenario_dir);
        let written = written.map(|path| bug.scenario = Some(path));
        (bug, written)
    }

    /// It has been looked at.
    pub fn is_seen(&self) -> bool {
        self.seen.is_some()
    }

    fn scenario(&self, setting: &Setting, bug: &Bug) -> Scenario {
        let Candidate { schedule, transitions, .. } = &self.candidate;
        let whole = scenario_of(setting, &self.candidate, &Bug { finding: None, ..bug.clone() });
        Scenario {
            steps: schedule.prefix.iter().map(bare_step).collect(),
            then: Some(Then::new(schedule)),
            options: crate::scenario::Options { max_depth: Some(*transitions), ..whole.options.clone() },
            ..whole
        }
    }
}

/// For how long there was no progress, and what was the last, in words; with the names for people of those who were seen.
fn without_progress(idle: &Idle, seen: Option<&Finding>) -> String {
    let transitions = idle.transitions;
    let Some((uid, at, Progress { what, fd, .. })) = idle.last else {
        return format!("no progress for {transitions} transitions, nor any before");
    };
    let index = seen.and_then(|found| found.threads.iter().position(|thread| thread.uid == uid));
    let who = match (seen, index) {
        (Some(found), Some(index)) => People::of(found).name(index as u32).to_string(),
        _ => format!("thread {uid}"),
    };
    let did = match (what, fd) {
        (Advance::OUTPUT, 1) => "wrote to standard output".into(),
        (Advance::OUTPUT, 2) => "wrote to standard error".into(),
        (Advance::OUTPUT, _) => format!("wrote to a file (descriptor {fd})"),
        (Advance::ACCEPTED, _) => "accepted a connection".into(),
        (Advance::BEGUN, _) => "made a thread or process".into(),
        (Advance::ENDED, _) => "ended".into(),
        (Advance::DECLARED, _) => "called VS_progress".into(),
        _ => "got on".to_string(),
    };
    format!("no progress for {transitions} transitions; the last: {who} {did}, after step {at}")
}

/// A step of an execution that nobody has looked at.
pub(super) fn bare_step(choice: &Choice) -> ScenarioStep {
    let (thread, op, value) = (choice.uid, choice.kind, choice.value);
    ScenarioStep { thread, op, value, alternatives: value + 1, text: String::new(), note: None, at: None }
}

/// What is shown of an execution that was cut off: not its steps, which are many and end nowhere, but what goes round.
pub(super) fn shown(mut found: Finding) -> Box<Finding> {
    found.rounds = rounds(&found);
    found.steps.clear();
    Box::new(found)
}
