//! Every enabled alternative in every state, each state once: depth-first search over the graph of states. An execution ends where it comes to a state that
//! was met before (`vsrun_model::states`), so a program whose executions never end is explored completely where its states are finitely many.
//!
//! No order is left out by what depends on what: a race between what came before a state and what comes after it would be lost with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use vsrun_model::arena::{Choice, Policy, State, Step};

use super::alternatives::{Branch, Item};
use super::api::{is_partial, Search};
use super::cycles::{Cycle, Graph};
use crate::schedule::{Schedule, States};
use crate::trace::Trace;

/// Alternatives that are to be tried, and the state that they are in.
#[derive(Debug)]
struct Open {
    branch: Branch,
    state: State,
}

/// Depth-first search over states.
#[derive(Debug, Default)]
pub struct Stateful {
    begun: bool,
    /// Not yet started; the last is next. None is empty.
    stack: Vec<Open>,
    /// Under way, by ticket, with the state before the last choice of its prefix.
    running: BTreeMap<u64, (Item, State)>,
    ticket: u64,
    partial: bool,
    /// The time is a part of states: the program looks at the clock. As long as it is not known to, states may differ in time alone, so then all begins again.
    timed: bool,
    transitions: u64,
    /// States that were met first by an execution, and executions that came to one that was met before.
    states: u64,
    met: u64,
    /// States that could not be told apart from others.
    untold: u64,
    graph: Graph,
    /// Cycles that are to be shown, and of how many states those were found that are known.
    cycles: Vec<Cycle>,
    looked_at: usize,
    /// The ticket of an execution that shows one.
    shows: Option<u64>,
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

    fn take(&mut self) -> Option<(Item, State)> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some((Item::root(), State::default()));
        }
        let open = self.stack.last_mut()?;
        let taken = (open.branch.take(), open.state);
        if open.branch.is_empty() {
            self.stack.pop();
        }
        Some(taken)
    }

    /// Adds what `trace` did not choose behind its prefix: all states there are new, but for the last one, if that was met before.
    fn branch(&mut self, item: &Item, trace: &Trace) {
        let leaf: Arc<[Choice]> = trace.choices(trace.steps.len()).into();
        let mut weight = item.weight;
        let behind = trace.steps.iter().zip(&trace.seen).enumerate().skip(item.prefix.len());
        let states = trace.states.iter().copied().chain(std::iter::repeat(State::default()));
        for ((at, (step, seen)), state) in behind.zip(states) {
            let alternatives: u64 = seen.iter().map(|s| u64::from(s.choices)).sum();
            weight /= alternatives.max(1) as f64;
            let taken = (step.act.uid, step.value);
            let branches = seen.iter().rev().map(|s| Branch::new(&leaf, at, s, taken, weight));
            let open = branches.filter(|branch| !branch.is_empty()).map(|branch| Open { branch, state });
            self.stack.extend(open);
        }
        self.finished += weight;
    }

    /// Adds the transitions from state to state that the execution made behind the state in which it began: `first`.
    fn follow(&mut self, item: &Item, first: State, trace: &Trace) {
        let begins = item.prefix.len();
        let choice = |step: &Step| Choice::new(step.act.uid, step.value, step.act.op.kind);
        if let (Some(&last), Some(state)) = (item.prefix.last(), trace.states.first()) {
            self.graph.add((&first, last, state), None);
        }
        for (n, pair) in trace.states.windows(2).enumerate() {
            let at = begins + n;
            if let (Some(step), Some(seen)) = (trace.steps.get(at), trace.seen.get(at)) {
                self.graph.add((&pair[0], choice(step), &pair[1]), Some(seen));
            }
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
        self.ticket += 1;
        self.shows = Some(self.ticket);
        let loops = Some(stem.len() as u32);
        let prefix = stem.into_iter().chain(round).collect();
        Some(Schedule { ticket: self.ticket, prefix, loops, ..Schedule::default() })
    }
}

impl Search for Stateful {
    fn next(&mut self) -> Option<Schedule> {
        if !self.running.is_empty() || self.shows.is_some() {
            return None;
        }
        self.look(false);
        if let Some(schedule) = self.shown() {
            return Some(schedule);
        }
        let first = !self.begun;
        let Some((item, state)) = self.take() else {
            self.look(true);
            return self.shown();
        };
        self.ticket += 1;
        let states = if first { States::Begin } else { States::On };
        let schedule = Schedule {
            ticket: self.ticket,
            prefix: item.prefix.clone(),
            policy: Policy::STAY,
            record: true,
            states,
            timed: self.timed,
            ..Schedule::default()
        };
        self.running.insert(self.ticket, (item, state));
        Some(schedule)
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        if self.shows == Some(ticket) {
            self.shows = None;
            return;
        }
        let Some((item, first)) = self.running.remove(&ticket) else { return };
        if trace.told_time && !self.timed {
            let transitions = self.transitions + item.transitions(trace);
            *self = Stateful { timed: true, ticket: self.ticket, transitions, ..Stateful::default() };
            return;
        }
        self.partial |= is_partial(trace);
        self.transitions += item.transitions(trace);
        let met = trace.end == vsrun_model::End::MET;
        self.met += u64::from(met);
        let told = trace.states.iter().filter(|state| state.digest != [0; 2]).count() as u64;
        self.states += told - u64::from(met && told > 0);
        self.untold += trace.states.len() as u64 - told;
        self.follow(&item, first, trace);
        self.branch(&item, trace);
    }

    fn frontier(&self) -> u64 {
        self.stack.iter().map(|open| open.branch.len()).sum()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.finished)
    }

    fn exhaustive(&self) -> bool {
        let over = self.stack.is_empty() && self.running.is_empty() && self.cycles.is_empty() && self.shows.is_none();
        self.begun && over && !self.partial
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
