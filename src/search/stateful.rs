//! Every enabled alternative in every state, each state once: depth-first search over the graph of states. An execution ends where it comes to a state that
//! was met before (`vsrun_model::states`), so a program whose executions never end is explored completely where its states are finitely many.
//!
//! No order is left out by what depends on what: a race between what came before a state and what comes after it would be lost with it.

use std::sync::Arc;

use vsrun_model::arena::{Choice, Policy, Step};
use vsrun_model::states::State;

use super::alternatives::{Branch, Item};
use super::api::{is_partial, Search};
use super::cycles::{Cycle, Graph};
use crate::schedule::{Schedule, States};
use crate::trace::Trace;

/// Where an execution leaves those before it.
#[derive(Clone, Copy, Debug, Default)]
struct From {
    /// The state before the last choice of its prefix.
    state: State,
    /// After so many choices, within the prefix, states are not told apart any more.
    untold: Option<u32>,
}

/// Alternatives that are to be tried in a state.
#[derive(Debug)]
struct Open {
    branch: Branch,
    from: From,
}

/// What an execution is for.
#[derive(Debug)]
enum Run {
    /// What was not known.
    Explores(Item, From),
    /// A cycle is gone round once.
    Shows,
}

/// Depth-first search over states.
#[derive(Debug, Default)]
pub struct Stateful {
    begun: bool,
    /// Not yet started; the last is next. None is empty.
    stack: Vec<Open>,
    /// The one under way, and its ticket.
    running: Option<(u64, Run)>,
    ticket: u64,
    partial: bool,
    /// The time is a part of states: the program looks at the clock. As long as it is not known to, states may differ in time alone, so then all begins again.
    timed: bool,
    transitions: u64,
    graph: Graph,
    /// Cycles that are to be shown, and how many states were known when cycles were looked for last.
    cycles: Vec<Cycle>,
    looked_at: usize,
    /// Part of the tree that is done, by Knuth's estimate.
    finished: f64,
}

/// Cycles are looked for first among so many states, then whenever there are twice as many, and at the end.
const FIRST_LOOK: usize = 64;

impl Stateful {
    /// A search that has not begun.
    pub fn new() -> Stateful {
        Stateful::default()
    }

    fn take(&mut self) -> Option<(Item, From)> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some((Item::root(), From::default()));
        }
        let open = self.stack.last_mut()?;
        let taken = (open.branch.take(), open.from);
        if open.branch.is_empty() {
            self.stack.pop();
        }
        Some(taken)
    }

    /// Adds what `trace` did not choose behind its prefix: all states there are new, but for the last one, if that was met before.
    fn branch(&mut self, (item, from): (&Item, &From), trace: &Trace) {
        let leaf: Arc<[Choice]> = trace.choices(trace.steps.len()).into();
        let (mut weight, mut untold) = (item.weight, from.untold);
        let behind = trace.steps.iter().zip(&trace.seen).enumerate().skip(item.prefix.len());
        for ((at, (step, seen)), &state) in behind.zip(&trace.states) {
            if untold.is_none() && !state.is_told() {
                untold = Some(at as u32);
            }
            let alternatives: u64 = seen.iter().map(|s| u64::from(s.choices)).sum();
            weight /= alternatives.max(1) as f64;
            let taken = (step.act.uid, step.value);
            let branches = seen.iter().rev().map(|s| Branch::new(&leaf, at, s, taken, weight));
            let open = branches.filter(|branch| !branch.is_empty());
            self.stack.extend(open.map(|branch| Open { branch, from: From { state, untold } }));
        }
        self.finished += weight;
    }

    /// Adds the transitions from state to state that the execution made: the last choice of its prefix, and those behind it.
    fn follow(&mut self, (item, from): (&Item, &From), trace: &Trace) {
        let choice = |step: &Step| Choice::new(step.act.uid, step.value, step.act.op.kind);
        if let (Some(&last), Some(state)) = (item.prefix.last(), trace.states.first()) {
            self.graph.add((&from.state, last, state), None);
        }
        let behind = trace.steps.iter().zip(&trace.seen).skip(item.prefix.len());
        for (pair, (step, seen)) in trace.states.windows(2).zip(behind) {
            self.graph.add((&pair[0], choice(step), &pair[1]), Some(seen));
        }
    }

    /// Looks for cycles, where it is time to: at the end, or where many states have come since the last time.
    fn look(&mut self, at_end: bool) {
        let n = self.graph.len();
        if n > self.looked_at && (at_end || n >= FIRST_LOOK.max(2 * self.looked_at)) {
            self.looked_at = n;
            self.cycles = self.graph.cycles();
            self.cycles.reverse();
        }
    }

    /// The execution that goes once round the next cycle.
    fn shown(&mut self) -> Option<Schedule> {
        let Cycle { stem, round } = self.cycles.pop()?;
        let loops = Some(stem.len() as u32);
        let prefix = stem.into_iter().chain(round).collect();
        Some(self.hand_out(Run::Shows, Schedule { prefix, loops, ..Schedule::default() }))
    }

    fn hand_out(&mut self, run: Run, schedule: Schedule) -> Schedule {
        self.ticket += 1;
        self.running = Some((self.ticket, run));
        Schedule { ticket: self.ticket, ..schedule }
    }
}

impl Search for Stateful {
    fn next(&mut self) -> Option<Schedule> {
        if self.running.is_some() {
            return None;
        }
        self.look(false);
        if let Some(schedule) = self.shown() {
            return Some(schedule);
        }
        let states = if self.begun { States::On } else { States::Begin };
        let Some((item, from)) = self.take() else {
            self.look(true);
            return self.shown();
        };
        let schedule = Schedule {
            prefix: item.prefix.clone(),
            policy: Policy::STAY,
            record: true,
            states,
            untold: from.untold,
            timed: self.timed,
            ..Schedule::default()
        };
        Some(self.hand_out(Run::Explores(item, from), schedule))
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        let Some((_, Run::Explores(item, from))) = self.running.take_if(|running| running.0 == ticket) else { return };
        self.transitions += item.transitions(trace);
        if trace.told_time && !self.timed {
            let (ticket, transitions) = (self.ticket, self.transitions);
            *self = Stateful { timed: true, ticket, transitions, ..Stateful::default() };
            return;
        }
        self.partial |= is_partial(trace);
        self.follow((&item, &from), trace);
        self.branch((&item, &from), trace);
    }

    fn frontier(&self) -> u64 {
        self.stack.iter().map(|open| open.branch.len()).sum()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.finished)
    }

    fn exhaustive(&self) -> bool {
        let over = self.stack.is_empty() && self.running.is_none() && self.cycles.is_empty();
        self.begun && over && !self.partial
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
