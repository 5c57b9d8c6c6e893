//! Bounded search: all schedules with at most K preemptions (Musuvathi and Qadeer, PLDI 2007) or K delays (Emmi,
//! Qadeer, Rakamaric, POPL 2011), those with 0 first, then 1, 2, ..
//!
//! An execution follows the default policy after its prefix, which costs nothing. Every other choice at a state behind
//! the prefix starts another execution, at its cost, so each schedule within the bound is executed exactly once, and
//! the search is complete for the bound. There is no further reduction: bounds and persistent sets do not combine
//! without care.

use vsrun_model::arena::{Choice, Policy, Seen};
use vsrun_model::{Kind, Tid, Uid};

use super::{is_partial, Search};
use crate::schedule::Schedule;
use crate::trace::Trace;

/// What is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Switches away from a thread that could have gone on.
    Preemptions(u32),
    /// Steps aside from a deterministic scheduler: choosing its n-th alternative costs n.
    Delays(u32),
}

impl Bound {
    /// The largest cost allowed.
    pub fn limit(self) -> u32 {
        match self {
            Bound::Preemptions(k) | Bound::Delays(k) => k,
        }
    }
}

/// An execution to be started: the first `at` choices of a finished one, then another choice.
#[derive(Clone, Copy, Debug)]
struct Item {
    leaf: usize,
    at: usize,
    choice: Choice,
}

/// The search.
#[derive(Debug)]
pub struct Bounded {
    bound: Bound,
    /// Executions to be started, by cost.
    queues: Vec<Vec<Item>>,
    /// Choices of finished executions that others start from.
    leaves: Vec<Vec<Choice>>,
    /// Cost of the executions that are run now.
    level: usize,
    started: bool,
    over: bool,
    /// A schedule was left out because it costs too much, or an execution was cut.
    partial: bool,
    /// Length of the prefix handed out last.
    known: usize,
    transitions: u64,
}

impl Bounded {
    /// A search that has not begun.
    pub fn new(bound: Bound) -> Bounded {
        let queues = vec![Vec::new(); bound.limit() as usize + 1];
        let (leaves, level, known) = (Vec::new(), 0, 0);
        Bounded { bound, queues, leaves, level, started: false, over: false, partial: false, known, transitions: 0 }
    }

    /// Cost of the executions run at present.
    pub fn level(&self) -> u32 {
        self.level as u32
    }

    fn take(&mut self) -> Option<Item> {
        while self.level < self.queues.len() {
            if let Some(item) = self.queues[self.level].pop() {
                return Some(item);
            }
            self.level += 1;
        }
        None
    }

    fn add(&mut self, cost: u32, item: Item) -> bool {
        match self.queues.get_mut(self.level + cost as usize) {
            Some(queue) => queue.push(item),
            None => self.partial = true,
        }
        self.level + (cost as usize) < self.queues.len()
    }

    /// Cost of letting `other` move where `chosen` did, after `last`.
    fn cost(&self, seen: &[Seen], last: Option<Uid>, chosen: Tid, other: &Seen) -> u32 {
        if other.act.tid == chosen {
            return 0;
        }
        match self.bound {
            Bound::Preemptions(_) => {
                let goes_on = |s: &Seen| s.choices > 0 && !matches!(s.act.op.kind, Kind::YIELD | Kind::SLEEP);
                let could = seen.iter().any(|s| Some(s.act.uid) == last && goes_on(s));
                u32::from(could && Some(other.act.uid) != last)
            }
            Bound::Delays(_) => {
                let enabled: Vec<Tid> = seen.iter().filter(|s| s.choices > 0).map(|s| s.act.tid).collect();
                let place = |t: Tid| enabled.iter().position(|&e| e == t).unwrap_or(0);
                ((place(other.act.tid) + enabled.len() - place(chosen)) % enabled.len().max(1)) as u32
            }
        }
    }
}

impl Search for Bounded {
    fn next(&mut self) -> Option<Schedule> {
        let mut prefix = Vec::new();
        if std::mem::replace(&mut self.started, true) {
            let Some(item) = self.take() else {
                self.over = true;
                return None;
            };
            prefix.extend_from_slice(&self.leaves[item.leaf][..item.at]);
            prefix.push(item.choice);
        }
        self.known = prefix.len();
        Some(Schedule { prefix, policy: Policy::STAY, record: true, ..Schedule::default() })
    }

    fn done(&mut self, trace: &Trace) {
        self.partial |= is_partial(trace);
        let length = trace.steps.len() as u64 + trace.unrecorded;
        self.transitions += length.saturating_sub(self.known.saturating_sub(1) as u64);
        let leaf = self.leaves.len();
        let mut needed = false;
        for (at, (step, seen)) in trace.steps.iter().zip(&trace.seen).enumerate().skip(self.known) {
            let last = at.checked_sub(1).map(|before| trace.steps[before].act.uid);
            for other in seen.iter().filter(|s| s.choices > 0) {
                let cost = self.cost(seen, last, step.act.tid, other);
                for value in 0..other.choices {
                    if (other.act.uid, value) != (step.act.uid, step.value) {
                        let choice = Choice::new(other.act.uid, value, other.act.op.kind);
                        needed |= self.add(cost, Item { leaf, at, choice });
                    }
                }
            }
        }
        if needed {
            self.leaves.push(trace.choices(trace.steps.len()));
        }
    }

    fn exhaustive(&self) -> bool {
        self.over && !self.partial
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }

    fn sleep_blocked(&self) -> u64 {
        0
    }
}
