//! Every enabled alternative in every state: depth-first search without any reduction, the yardstick for the others.
//!
//! What an execution did not choose behind its prefix becomes work of its own, deepest first. Pieces of work do not
//! depend on each other, so any number of executions may be under way; how many there are in all does not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use vsrun_model::arena::Choice;

use super::alternatives::{by_leaf, items, with_leaves, Branch, Item};
use super::api::{is_partial, Search};
use crate::codec;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Depth-first search over every enabled (thread, alternative).
#[derive(Debug)]
pub struct Naive {
    /// Executions that were asked for again, before anything else: the first one, those under way when it was saved.
    first: Vec<Item>,
    /// Not yet started; the last is next. None is empty.
    stack: Vec<Branch>,
    /// Under way, by ticket.
    running: BTreeMap<u64, Item>,
    /// The next ticket.
    ticket: u64,
    partial: bool,
    transitions: u64,
    /// Part of the tree that is done, by Knuth's estimate.
    finished: f64,
}

impl Default for Naive {
    fn default() -> Naive {
        Naive {
            first: vec![Item::root()],
            stack: Vec::new(),
            running: BTreeMap::new(),
            ticket: 0,
            partial: false,
            transitions: 0,
            finished: 0.0,
        }
    }
}

impl Naive {
    /// A search that has not begun.
    pub fn new() -> Naive {
        Naive::default()
    }

    fn take(&mut self) -> Option<Item> {
        if let Some(item) = self.first.pop() {
            return Some(item);
        }
        let branch = self.stack.last_mut()?;
        let item = branch.take();
        if branch.is_empty() {
            self.stack.pop();
        }
        Some(item)
    }

    /// Adds what `trace` did not choose behind its prefix.
    fn branch(&mut self, item: &Item, trace: &Trace) {
        let leaf: Arc<[Choice]> = trace.choices(trace.steps.len()).into();
        let mut weight = item.weight;
        for (at, (step, seen)) in trace.steps.iter().zip(&trace.seen).enumerate().skip(item.prefix.len()) {
            let alternatives: u64 = seen.iter().map(|s| u64::from(s.choices)).sum();
            weight /= alternatives.max(1) as f64;
            let taken = (step.act.uid, step.value);
            let branches = seen.iter().rev().map(|s| Branch::new(&leaf, at, s, taken, weight));
            self.stack.extend(branches.filter(|b| !b.is_empty()));
        }
        self.finished += weight;
    }
}

impl Search for Naive {
    fn next(&mut self) -> Option<Schedule> {
        let item = self.take()?;
        self.ticket += 1;
        let schedule = item.schedule(self.ticket);
        self.running.insert(self.ticket, item);
        Some(schedule)
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        let Some(item) = self.running.remove(&ticket) else { return };
        self.partial |= is_partial(trace);
        self.transitions += item.transitions(trace);
        self.branch(&item, trace);
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let first: Vec<&Item> = self.first.iter().chain(self.running.values()).collect();
        let stack = by_leaf(&self.stack);
        Some(codec::encode(&(first, stack, self.ticket, self.partial, self.transitions, self.finished)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (first, stack, ticket, partial, transitions, finished) = codec::decode(bytes)?;
        let (stack, running) = (with_leaves(stack)?, BTreeMap::new());
        codec::counted([ticket, transitions])?;
        items(&first)?;
        codec::is_part(finished)?;
        *self = Naive { first, stack, running, ticket, partial, transitions, finished };
        Ok(())
    }

    fn frontier(&self) -> u64 {
        self.first.len() as u64 + self.stack.iter().map(Branch::len).sum::<u64>()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.finished)
    }

    fn exhaustive(&self) -> bool {
        self.first.is_empty() && self.stack.is_empty() && self.running.is_empty() && !self.partial
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
