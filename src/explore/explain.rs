//! `vsrun explain FILE`: the latest step of a scenario at which another choice leads away from its bug.
//!
//! From the last step back, each other choice is made there, and what comes after it is left to chance, a number of times. Behind the
//! step that is found every choice led to the bug, as far as these samples tell.

use std::time::Instant;

use vsrun_model::arena::{Choice, Policy};
use vsrun_model::kind::Outcome;
use vsrun_model::{dependent, Act, End, Uid};

use super::failure::Failure;
use super::replay::{difference, input_of, load, schedule_of, spec_of};
use super::shorten::is_same;
use crate::config::Explain;
use crate::finding::{BugKind, Ending, Explained, Finding, Move, Names, People, PlaceView, Shows, Turn, UseView};
use crate::race::Flaws;
use crate::runtime::Outcome as Execution;
use crate::runtime::{Inspector, Sign, Spec, Worker};
use crate::scenario::{Options, Scenario};
use crate::schedule::Schedule;
use crate::shrink::Order;
use crate::trace::Trace;
use crate::words::steps::note;

/// A continuation has so many times the steps of the scenario, and so many more; then it is cut.
const LONGER: u64 = 10;
const MORE: u64 = 1000;

/// So many times the samples of a choice are run from the beginning, where no single choice leads away.
const FROM_THE_BEGINNING: u64 = 5;

/// What could be done in a state instead.
struct Other {
    /// The choices up to it, with it.
    prefix: Vec<Choice>,
    /// How many alternatives its operation has there.
    alternatives: u32,
    /// The step at which the scenario makes it.
    at: Option<usize>,
}

struct Sampler<'a> {
    worker: &'a mut Worker,
    bug: (BugKind, u64),
    samples: u64,
    seed: u64,
    most: u64,
    until: Option<Instant>,
    executions: u64,
}

impl Sampler<'_> {
    /// What comes of random continuations. `None`: the time is over.
    ///
    /// # Errors
    /// vsrun was asked to end, or an execution could not be run.
    fn shows(&mut self, prefix: &[Choice]) -> Result<Option<Shows>, Failure> {
        let mut shows = Shows::default();
        for n in 0..self.samples {
            let schedule = Schedule {
                prefix: prefix.to_vec(),
                policy: Policy::RANDOM,
                seed: self.seed.wrapping_add(n),
                most: Some(self.most),
                ..Schedule::default()
            };
            let Some(outcome) = self.run(&schedule)? else { return Ok(None) };
            match outcome.sign {
                _ if is_same(self.worker, &outcome, self.bug) => shows.bug += 1,
                Sign::Bug { .. } => shows.other += 1,
                // That order there is not.
                Sign::Unfollowed(_) => return Ok(Some(Shows::default())),
                Sign::Clean | Sign::Idle if outcome.trace.end != End::DEPTH => shows.none += 1,
                _ => shows.cut += 1,
            }
        }
        Ok(Some(shows))
    }

    fn run(&mut self, schedule: &Schedule) -> Result<Option<Execution>, Failure> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Ok(None);
        }
        self.worker.break_off(self.until);
        let outcome = self.worker.run(schedule);
        self.worker.break_off(None);
        self.executions += 1;
        let outcome = outcome?;
        if outcome.ending != Ending::Interrupted {
            return Ok(Some(outcome));
        }
        match self.worker.is_halted() {
            true => Err(Failure::interrupted("interrupted: nothing is said of the scenario")),
            false => Ok(None),
        }
    }
}

/// Finds it.
///
/// # Errors
/// The scenario cannot be read or run or comes to something else, there is nothing to find, or vsrun was asked to end.
pub fn explain(args: &Explain) -> Result<Explained, Failure> {
    let (scenario, _) = load(&args.file, args.trust, false)?;
    if scenario.bug.kind == BugKind::Outcome {
        return Err(Failure::environment(
            "the scenario is of no bug (--save-outcome): there is nothing to lead away from",
        ));
    }
    if scenario.then.is_some() || scenario.steps.is_empty() {
        return Err(Failure::environment("the scenario has no steps of its own, so none of them can be changed"));
    }
    if scenario.options.loops.is_some() {
        return Err(Failure::environment(
            "the scenario goes round for ever because it is made to: any other choice leads away from that, and none for good",
        ));
    }
    if scenario.options.real_files {
        return Err(Failure::environment(
            "in the scenario files are really changed (--files real), which is not to be done many times",
        ));
    }
    let mut worker = Worker::start(unbounded(&scenario), input_of(&scenario)?, None)?;
    let race = (scenario.bug.kind == BugKind::Race).then_some(scenario.bug.identity);
    let found = worker.examine(&mut Inspector::default(), &up_to_its_end(&scenario), race)?;
    match found.ending {
        Ending::Interrupted => return Err(Failure::interrupted("interrupted: nothing is said of the scenario")),
        ref ending if ending.is_environments() => {
            return Err(Failure::environment(format!("environment: {}", found.line())))
        }
        _ => {}
    }
    if let Some(line) = difference(&scenario, &found) {
        return Err(Failure::own(line));
    }
    let trace = recorded(&mut worker, &scenario)?;
    let mut sampler = Sampler {
        bug: (scenario.bug.kind, if scenario.bug.identity == 0 { found.identity } else { scenario.bug.identity }),
        samples: args.samples,
        seed: args.seed,
        most: trace.steps.len() as u64 * LONGER + MORE,
        until: Instant::now().checked_add(args.time),
        worker: &mut worker,
        executions: 0,
    };
    let mut explained = Explained {
        bug: (scenario.bug.kind, scenario.bug.summary.clone()),
        line: found.summary.render(&People::of(&found)),
        uses: found.race.as_ref().map(|race| race.uses.each_ref().map(|access| use_of(access, &found))),
        steps: trace.steps.len() as u64,
        turn: None,
        later: None,
        beginning: None,
        left: trace.steps.len() as u64,
        executions: 0,
    };
    let order = Order::of(&trace, true);
    for n in (0..trace.steps.len()).rev() {
        let Some(turn) = turn_at(&mut sampler, &scenario, (&trace, &found, order.as_ref()), n)? else { break };
        explained.left = n as u64;
        let Some(turn) = turn else { continue };
        if turn.shows[1].bug == 0 {
            explained.later = explained.turn.replace(turn);
            break;
        }
        // The last one that leads away now and then, where none does each time.
        explained.turn.get_or_insert(turn);
    }
    if explained.turn.is_none() && explained.left == 0 {
        // One choice is not enough, or none is: executions without any of the scenario's tell which.
        sampler.samples = sampler.samples.saturating_mul(FROM_THE_BEGINNING);
        explained.beginning = sampler.shows(&[])?;
    }
    explained.executions = sampler.executions;
    Ok(explained)
}

/// The world of a scenario. One of a race ends where both uses are enabled, by its depth bound; what other choices lead to goes on behind that.
fn unbounded(scenario: &Scenario) -> Spec {
    let spec = spec_of(scenario, &[]);
    match scenario.bug.kind {
        BugKind::Race => {
            let options = Options { max_depth: None, ..spec.options };
            Spec { options, max_depth: u64::MAX, flaws: Flaws::ALL, ..spec }
        }
        _ => spec,
    }
}

/// Its schedule, with that bound.
fn up_to_its_end(scenario: &Scenario) -> Schedule {
    let schedule = schedule_of(scenario);
    let of_race = scenario.options.max_depth.filter(|_| scenario.bug.kind == BugKind::Race);
    Schedule { depth: of_race.or(schedule.depth), ..schedule }
}

fn use_of(access: &UseView, found: &Finding) -> Move {
    let (thread, who) = (found.thread(access.thread), People::of(found).thread(access.thread));
    let (text, at) = (access.what.clone(), access.at.brief());
    Move { thread, people: (who, text.clone()), text, at, step: None }
}

/// The scenario's trace with all states.
fn recorded(worker: &mut Worker, scenario: &Scenario) -> Result<Trace, Failure> {
    let schedule = up_to_its_end(scenario);
    // Where memory is watched all states are recorded anyhow.
    let (record, record_back) = (!worker.watches(), schedule.prefix.len() as u32);
    let outcome = worker.run(&Schedule { record, record_back, ..schedule })?;
    let trace = outcome.trace;
    let whole = trace.steps.len() == scenario.steps.len() && trace.seen.len() == trace.steps.len();
    match outcome.ending {
        Ending::Interrupted => Err(Failure::interrupted("interrupted: nothing is said of the scenario")),
        _ if !whole => {
            Err(Failure::own("vsrun bug: the scenario came to another end when it was run without the tracer"))
        }
        _ => Ok(trace),
    }
}

/// What else could be done from step `n` on: another choice there; or what depends on the step, and comes behind it in the scenario or waits
/// in the end, comes before it.
fn others(trace: &Trace, order: Option<&Order>, n: usize) -> Vec<Other> {
    let step = &trace.steps[n];
    let taken = trace.choices(trace.steps.len());
    let mut all: Vec<Other> = Vec::new();
    // What comes between and does not happen after the step need not wait for it; what the other thread does up to there goes with it.
    let without = |order: &Order, end: usize, uid: Uid| -> Vec<Choice> {
        let goes = |k: &usize| taken[*k].uid == uid || !order.is_before(n, *k);
        let free = (n + 1..end).filter(goes).map(|k| taken[k]);
        taken[..n].iter().copied().chain(free).collect()
    };
    if let Some(order) = order {
        let conflicts = |act: &Act| act.uid != step.act.uid && dependent(&step.act, act, false);
        for m in (n + 1..taken.len()).filter(|&m| conflicts(&trace.steps[m].act)) {
            let (mut prefix, alternatives) = (without(order, m, taken[m].uid), trace.steps[m].choices);
            prefix.push(taken[m]);
            all.push(Other { prefix, alternatives, at: Some(m) });
        }
        for act in trace.last.iter().map(|pending| &pending.act).filter(|act| conflicts(act)) {
            let mut prefix = without(order, taken.len(), act.uid);
            prefix.push(Choice::new(act.uid, 0, act.op.kind));
            all.push(Other { prefix, alternatives: 1, at: None });
        }
    }
    for seen in &trace.seen[n] {
        for value in (0..seen.choices).filter(|&value| seen.act.uid != step.act.uid || value != step.value) {
            let mut prefix = taken[..n].to_vec();
            prefix.push(Choice::new(seen.act.uid, value, seen.act.op.kind));
            if all.iter().all(|other| other.prefix != prefix) {
                let made = (n + 1..taken.len()).find(|&m| taken[m].uid == seen.act.uid);
                let same = made.filter(|&m| taken[m].kind == seen.act.op.kind);
                all.push(Other { prefix, alternatives: seen.choices, at: same });
            }
        }
    }
    all
}

/// The other choice at step `n` that leads away most often. Outer `None`: the time is over; inner: none does.
fn turn_at(
    sampler: &mut Sampler,
    scenario: &Scenario,
    (trace, found, order): (&Trace, &Finding, Option<&Order>),
    n: usize,
) -> Result<Option<Option<Turn>>, Failure> {
    let mut best: Option<(Other, Shows)> = None;
    for other in others(trace, order, n) {
        let Some(shows) = sampler.shows(&other.prefix)? else { return Ok(None) };
        if shows.away() > 0 && best.as_ref().is_none_or(|(_, least)| shows.bug < least.bug) {
            let gone = shows.bug == 0;
            best = Some((other, shows));
            if gone {
                break;
            }
        }
    }
    let Some((other, away)) = best else { return Ok(Some(None)) };
    let Some(shows) = sampler.shows(&trace.choices(n + 1))? else { return Ok(None) };
    let taken = move_at(scenario, found, n);
    let instead = instead(scenario, found, n, &other);
    Ok(Some(Some(Turn { taken, instead, shows: [shows, away] })))
}

fn text_of(text: &str, kind: vsrun_model::Kind, (value, alternatives): (u32, u32)) -> String {
    let text = if text.is_empty() { kind.name() } else { text };
    note(kind, value, alternatives).map_or_else(|| text.to_string(), |note| format!("{text} ({note})"))
}

fn move_at(scenario: &Scenario, found: &Finding, n: usize) -> Move {
    let step = &scenario.steps[n];
    let way = (step.value, step.alternatives);
    let (text, shown) = texts(scenario, found, n);
    let (text, shown) = (text_of(&text, step.op, way), text_of(&shown, step.op, way));
    let people = (People::of(found).mover(step.thread), shown);
    Move { thread: step.thread.to_string(), text, people, at: step.at.clone(), step: Some(n as u64 + 1) }
}

/// Step `n` as a call: as the scenario has it, and with names for people.
fn texts(scenario: &Scenario, found: &Finding, n: usize) -> (String, String) {
    let text = scenario.steps[n].text.clone();
    let step = found.steps.get(n).filter(|step| step.text.render(found) == text);
    let shown = step.map_or_else(|| text.clone(), |step| step.text.render(&People::of(found)));
    (text, shown)
}

/// The operation that is made instead, as the scenario shows it where its thread comes to it, or where it waits in the end.
fn instead(scenario: &Scenario, found: &Finding, n: usize, other: &Other) -> Move {
    let choice = other.prefix.last().copied().unwrap_or_default();
    let (thread, people) = (choice.uid.to_string(), People::of(found));
    let who = people.mover(choice.uid);
    let way = (choice.value, other.alternatives);
    if choice.uid == scenario.steps[n].thread {
        // Its own operation, which comes out another way.
        let changed = |text: String| match (&choice.kind.row().shown.outcome, text.rsplit_once(" = ")) {
            (Outcome::Value, Some((call, _))) => format!("{call} = {}", choice.value),
            _ => text_of(&text, choice.kind, way),
        };
        let (text, shown) = texts(scenario, found, n);
        let people = (who, changed(shown));
        return Move { thread, text: changed(text), people, at: scenario.steps[n].at.clone(), step: None };
    }
    let (text, shown, at) = match other.at {
        Some(m) => {
            let (text, shown) = texts(scenario, found, m);
            (text, shown, scenario.steps[m].at.clone())
        }
        None => {
            let thread = found.threads.iter().find(|thread| thread.uid == choice.uid);
            let pending = thread.and_then(|thread| thread.pending.as_ref());
            let text = |names: &dyn Names| pending.map_or_else(String::new, |pending| pending.text.render(names));
            let place = thread.and_then(|thread| PlaceView::of_program(&thread.frames));
            (text(found), text(&people), place.and_then(PlaceView::brief))
        }
    };
    let people = (who, text_of(&shown, choice.kind, way));
    let step = other.at.map(|m| m as u64 + 1);
    Move { thread, text: text_of(&text, choice.kind, way), people, at, step }
}
