//! Bounded search: all schedules with at most K preemptions (Musuvathi and Qadeer, PLDI 2007) or K delays (Emmi,
//! Qadeer, Rakamaric, POPL 2011), those with 0 first, then 1, 2, ..
//!
//! An execution follows the default policy after its prefix, which costs nothing. Every other choice at a state behind
//! the prefix starts another execution, at its cost, so each schedule within the bound is executed exactly once, and
//! the search is complete for the bound. There is no further reduction: for preemptions [`super::bounded_reduction`] has
//! one, which is tested against this; delays it does not combine with.

use std::collections::BTreeMap;
use std::sync::Arc;

use vsrun_model::arena::{Choice, Seen};
use vsrun_model::depend::{EXPIRED, GIVES_WAY};
use vsrun_model::signal::DIES;
use vsrun_model::{Kind, Tid, Uid};

use super::alternatives::{by_leaf, items, with_leaves, Branch, ByLeaf, Item};
use super::api::{is_partial, Search};
use crate::codec::{self, DecodeError};
use crate::incomplete::Reason;
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

/// The search.
#[derive(Debug)]
pub struct Bounded {
    bound: Bound,
    /// Executions that were asked for before: the first one, those under way when it was saved; each with its cost.
    first: Vec<(u32, Item)>,
    /// Alternatives not yet started, by cost. None is empty.
    queues: Vec<Vec<Branch>>,
    /// Under way, by ticket, each with its cost.
    running: BTreeMap<u64, (u32, Item)>,
    /// The next ticket.
    ticket: u64,
    /// A schedule was left out because it costs too much, or an execution was cut.
    partial: bool,
    transitions: u64,
    /// Part of the tree that is done, by Knuth's estimate.
    finished: f64,
}

impl Bounded {
    /// A search that has not begun.
    pub fn new(bound: Bound) -> Bounded {
        Bounded {
            bound,
            first: vec![(0, Item::root())],
            queues: vec![Vec::new(); bound.limit() as usize + 1],
            running: BTreeMap::new(),
            ticket: 0,
            partial: false,
            transitions: 0,
            finished: 0.0,
        }
    }

    /// What [`Search::save`] wrote.
    fn read(bound: Bound, bytes: &[u8]) -> Result<Bounded, DecodeError> {
        let (first, queues, ticket, partial, transitions, finished) = codec::decode(bytes)?;
        let (first, queues): (Vec<(u32, Item)>, Vec<ByLeaf>) = (first, queues);
        if first.iter().any(|(cost, _)| *cost > bound.limit()) || queues.len() != bound.limit() as usize + 1 {
            return Err(DecodeError::Wrong("cost"));
        }
        let queues = queues.into_iter().map(with_leaves).collect::<Result<_, _>>()?;
        codec::counted([ticket, transitions])?;
        items(first.iter().map(|(_, item)| item))?;
        codec::is_part(finished)?;
        Ok(Bounded { bound, first, queues, running: BTreeMap::new(), ticket, partial, transitions, finished })
    }

    fn take(&mut self) -> Option<(u32, Item)> {
        if let Some(item) = self.first.pop() {
            return Some(item);
        }
        let (level, queue) = self.queues.iter_mut().enumerate().find(|(_, queue)| !queue.is_empty())?;
        let branch = queue.last_mut()?;
        let item = branch.take();
        if branch.is_empty() {
            queue.pop();
        }
        Some((level as u32, item))
    }

    /// Adds what `trace`, an execution of that cost, did not choose behind its prefix.
    fn branch(&mut self, level: u32, item: &Item, trace: &Trace) {
        let leaf: Arc<[Choice]> = trace.choices(trace.steps.len()).into();
        let mut weight = item.weight;
        for (at, (step, seen)) in trace.steps.iter().zip(&trace.seen).enumerate().skip(item.prefix.len()) {
            let last = at.checked_sub(1).map(|before| trace.steps[before].act.uid);
            let enabled = seen.iter().filter(|s| s.choices > 0);
            let costs: Vec<(u64, &Seen)> =
                enabled.map(|s| (u64::from(level) + u64::from(self.cost(seen, last, step.act.tid, s)), s)).collect();
            let limit = u64::from(self.bound.limit());
            let within: u64 = costs.iter().filter(|(cost, _)| *cost <= limit).map(|(_, s)| u64::from(s.choices)).sum();
            weight /= within.max(1) as f64;
            let taken = (step.act.uid, step.value);
            for (cost, other) in costs {
                let branch = Branch::new(&leaf, at, other, taken, weight);
                match self.queues.get_mut(cost as usize) {
                    _ if branch.is_empty() => {}
                    Some(queue) => queue.push(branch),
                    None => self.partial = true,
                }
            }
        }
        self.finished += weight;
    }

    /// Cost of letting `other` move where `chosen` did, after `last`.
    fn cost(&self, seen: &[Seen], last: Option<Uid>, chosen: Tid, other: &Seen) -> u32 {
        if other.act.tid == chosen {
            return 0;
        }
        match self.bound {
            Bound::Preemptions(_) => u32::from(preempts(seen, last, other)),
            Bound::Delays(_) => {
                let enabled: Vec<Tid> = seen.iter().filter(|s| s.choices > 0).map(|s| s.act.tid).collect();
                let place = |t: Tid| enabled.iter().position(|&e| e == t).unwrap_or(0);
                ((place(other.act.tid) + enabled.len() - place(chosen)) % enabled.len().max(1)) as u32
            }
        }
    }
}

/// True if it is a preemption that `moves` does so, after `last`, in a state: that one could have gone on otherwise than by
/// giving up a wait, and does not give way. That a process which another one has killed is over is nobody's decision.
pub(super) fn preempts(seen: &[Seen], last: Option<Uid>, moves: &Seen) -> bool {
    let goes_on = |s: &Seen| s.choices > 0 && s.act.fate & (GIVES_WAY | EXPIRED) == 0 && s.act.op.kind != Kind::SLEEP;
    let dies = moves.act.op.signals & DIES != 0;
    !dies && Some(moves.act.uid) != last && seen.iter().any(|s| Some(s.act.uid) == last && goes_on(s))
}

impl Search for Bounded {
    fn next(&mut self) -> Option<Schedule> {
        let (cost, item) = self.take()?;
        self.ticket += 1;
        let schedule = item.schedule(self.ticket);
        self.running.insert(self.ticket, (cost, item));
        Some(schedule)
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        let Some((level, item)) = self.running.remove(&ticket) else { return };
        self.partial |= is_partial(trace);
        self.transitions += item.transitions(trace);
        self.branch(level, &item, trace);
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let first: Vec<&(u32, Item)> = self.first.iter().chain(self.running.values()).collect();
        let queues: Vec<_> = self.queues.iter().map(|queue| by_leaf(queue)).collect();
        Some(codec::encode(&(first, queues, self.ticket, self.partial, self.transitions, self.finished)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        *self = Bounded::read(self.bound, bytes)?;
        Ok(())
    }

    fn frontier(&self) -> u64 {
        self.first.len() as u64 + self.queues.iter().flatten().map(Branch::len).sum::<u64>()
    }

    fn progress(&self) -> Option<f64> {
        Some(self.finished)
    }

    fn exhaustive(&self) -> bool {
        let over = self.first.is_empty() && self.queues.iter().all(Vec::is_empty) && self.running.is_empty();
        over && !self.partial
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Bound)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}
