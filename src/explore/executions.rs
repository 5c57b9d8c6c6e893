//! Executions to be run, and what is counted and noted of those that are over.

use std::collections::BTreeMap;
use std::sync::Arc;

use vsrun_model::End;

use super::first::Lot;
use crate::finding::{Use, Uses};
use crate::incomplete::{Reason, Reasons};
use crate::objects::Objects;
use crate::runtime::{Outcome, Watchlist, ONLY_WRITTEN};
use crate::schedule::{self, Schedule};
use crate::trace::Trace;

/// How the note about such locks begins.
const CIRCLE: &str = "locks are acquired in a circle, a deadlock unless something else keeps the threads apart: ";

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
    /// Whose it is.
    pub of: Part,
}

/// Whose an execution is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// The search's.
    Search,
    /// The search's, as far as it is short: one that is long comes again, whole.
    Beginning,
    /// It was drawn by lot.
    Lot(Lot),
}

impl Task {
    /// It is one that the search is told of.
    pub fn is_of_search(&self, trace: &Trace) -> bool {
        match self.of {
            Part::Search => true,
            Part::Beginning => !self.was_cut(trace),
            Part::Lot(_) => false,
        }
    }

    /// It was cut where its schedule says.
    pub fn was_cut(&self, trace: &Trace) -> bool {
        let transitions = trace.steps.len() as u64 + trace.unrecorded;
        trace.end == End::DEPTH && self.schedule.most.is_some_and(|most| transitions >= most)
    }
}

/// A schedule that leads through all recorded steps of a trace; one whose steps were too many to record, or to give as choices, is its own.
pub(super) fn replayable(schedule: &Schedule, trace: &Trace) -> Schedule {
    if !schedule::has_room_for(trace.steps.len(), trace.unrecorded) {
        return Schedule { record: false, blind: false, ..schedule.clone() };
    }
    let loops = schedule.loops.filter(|_| trace.end == End::LOOP);
    Schedule { prefix: trace.choices(trace.steps.len()), loops, ..Schedule::default() }
}

/// Transitions of an execution.
pub(super) fn length(outcome: &Outcome) -> u64 {
    outcome.trace.steps.len() as u64 + outcome.trace.unrecorded
}

/// What was counted and noted so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Executions that are over, with those that were run ahead of their turns.
    pub executions: u64,
    /// Transitions of the longest one.
    pub max_depth: u64,
    /// Executions that were cut, at the depth bound or for want of room.
    pub cut: u64,
    /// Executions that reached an end of the program's.
    pub ended: u64,
    /// Transitions of the execution that was broken off when the time was over or vsrun was asked to end: of several workers' the longest.
    pub broken_off: Option<u64>,
    /// Why the search is not complete, as far as executions have shown it, and how many have.
    pub reasons: BTreeMap<Reason, u64>,
    /// Functions that return a choice which executions have called, a bit for each.
    pub tosses: u64,
    /// Uses of watched variables, those alike together; not saved.
    pub uses: BTreeMap<Alike, Uses>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Uses with the same of these are alike: variable, thread, process, what it does, and where.
type Alike = (String, u64, u32, Use, String);

impl Counts {
    /// The uses of watched variables in an execution.
    pub fn used(&mut self, execution: u64, list: &Watchlist) {
        for (order, one) in (0..).zip(&list.seen) {
            let alike = (one.variable.clone(), one.thread.0, one.process, one.does, one.place.by_symbol());
            let uses =
                self.uses.entry(alike).or_insert_with(|| Uses { first: one.clone(), execution, order, times: 0 });
            uses.times += 1;
            if execution < uses.execution {
                (uses.first, uses.execution, uses.order) = (one.clone(), execution, order);
            }
        }
        if list.lost > 0 {
            self.note("--watch: of an execution only the first uses are told");
        }
        if list.programs > 0 {
            self.note("--watch: in a program that another one executes nothing is watched");
        }
    }

    /// All of them, by the first of each.
    pub fn all_uses(&self) -> Vec<Uses> {
        let mut all: Vec<Uses> = self.uses.values().cloned().collect();
        all.sort_by_key(|uses| (uses.execution, uses.order));
        all
    }

    pub fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|n| n == text) {
            self.notes.push(text.to_string());
        }
    }

    /// Locks that threads acquire in a circle.
    pub fn circle(&mut self, text: &str) {
        /// So many are named.
        const MAX_CIRCLES: usize = 10;
        if self.notes.iter().filter(|note| note.starts_with(CIRCLE)).count() < MAX_CIRCLES {
            self.note(&format!("{CIRCLE}{text}"));
        }
    }

    /// Two accesses that nothing orders.
    pub fn race(&mut self, text: &str) {
        /// So many are named.
        const MAX_RACES: u64 = 20;
        if self.notes.iter().any(|n| n == text) {
            return;
        }
        self.see(&[Reason::Races].into());
        match self.reasons[&Reason::Races] {
            n if n < MAX_RACES => self.note(text),
            _ => self.note("there are more of these: they are not named"),
        }
    }

    /// Takes account of what one execution has shown.
    pub fn see(&mut self, reasons: &Reasons) {
        for reason in reasons {
            *self.reasons.entry(*reason).or_default() += 1;
            reason.note().into_iter().for_each(|text| self.note(text));
        }
    }

    /// How an execution ended that is over.
    pub fn end(&mut self, end: End) {
        match end {
            End::DEPTH | End::ROOM => self.cut += 1,
            End::SLEEP_BLOCKED | End::MISMATCH | End::MET => {}
            _ => self.ended += 1,
        }
    }

    /// The search starts over, and with it what is counted; what was seen of the program stays known.
    pub fn start_over(&mut self) {
        (self.executions, self.max_depth, self.cut, self.ended) = (0, 0, 0, 0);
        self.reasons.retain(|reason, _| !matches!(reason, Reason::Depth | Reason::Idle));
        self.uses.clear();
        self.notes.retain(|note| !note.ends_with(ONLY_WRITTEN));
    }
}
