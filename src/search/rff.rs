//! Sampling guided by what executions have shown (RFF: Wolff, Shi, Duck, Mathur, Roychoudhury, Greybox fuzzing for concurrency testing, ASPLOS 2024).
//!
//! What an operation finds was put there by the operation that wrote its object last: these two are a pair. Operations that do the same at the same
//! place in the code, in threads with the same start routine, count as one *event*, so a hundred threads alike have as few pairs as two. A schedule
//! is aimed at some pairs: each is a wish that an event reads from another one, or that it does not. Operations that stand in the way of a wish are put
//! off; among the others the schedule is one of partial order sampling. What shows a pair that none before has shown is kept, and later schedules are
//! variations of what was kept: a wish more, a wish less, one turned round. So are pairs of locks (who had it last), of messages, of all objects.
//!
//! Which schedule is varied is drawn in favour of those that were varied least.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::aims::{Pair, Wish};
use vsrun_model::arena::Policy;

use super::api::Search;
use super::lots::Lots;
use super::pct::Pct;
use crate::codec;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// Most wishes of a schedule.
const MOST_WISHES: usize = 8;
/// Most schedules that are kept to be varied, and most pairs that are known.
const MOST_KEPT: usize = 1 << 12;
const MOST_PAIRS: usize = 1 << 16;

/// A wish as it is saved: object, writer, reader, whether it is wanted.
type Saved = (u64, u64, u64, bool);
/// What an execution begins with.
type Start = (u64, Vec<Saved>);

/// An endless sequence of samples.
#[derive(Debug)]
pub struct Rff {
    lots: Lots,
    /// Executions handed out.
    ticket: u64,
    /// Executions that were under way when the search was saved; they are begun again.
    again: Vec<Start>,
    /// Executions under way, by ticket.
    running: BTreeMap<u64, Start>,
    /// What was kept, and how often it was varied.
    kept: Vec<(Vec<Saved>, u64)>,
    /// (object, writer, event) that executions have shown.
    pairs: BTreeSet<(u64, u64, u64)>,
    /// By object: the events that write, and all events, in order of appearance.
    events: BTreeMap<u64, (Vec<u64>, Vec<u64>)>,
    transitions: u64,
}

impl Rff {
    /// The samples of `seed`.
    pub fn new(seed: u64) -> Rff {
        Rff {
            lots: Lots { state: seed.wrapping_mul(0x2545_f491_4f6c_dd1d) },
            ticket: 0,
            again: Vec::new(),
            running: BTreeMap::new(),
            kept: vec![(Vec::new(), 0)],
            pairs: BTreeSet::new(),
            events: BTreeMap::new(),
            transitions: 0,
        }
    }

    /// Those of `seed`, as variations of what another one has kept.
    ///
    /// # Errors
    /// These are not the bytes of one.
    pub fn after(seed: u64, saved: &[u8]) -> Result<Rff, String> {
        let mut rff = Rff::new(seed);
        let (lots, ticket) = (rff.lots, rff.ticket);
        rff.restore(saved)?;
        // Its own lots, and each schedule that is kept is as good as any other again.
        (rff.lots, rff.ticket, rff.transitions) = (lots, ticket, 0);
        rff.again.clear();
        rff.kept.iter_mut().for_each(|(_, times)| *times = 0);
        Ok(rff)
    }

    /// Of two that are drawn the one that was varied less, varied.
    fn draw(&mut self) -> Start {
        let seed = self.lots.draw();
        let (a, b) = (self.lots.below(self.kept.len()), self.lots.below(self.kept.len()));
        let at = if self.kept[b].1 < self.kept[a].1 { b } else { a };
        self.kept[at].1 += 1;
        let mut wishes = self.kept[at].0.clone();
        // Once in a while as it was: the rest of the schedule is another one.
        let changes = if self.kept[at].1 == 1 { 1 } else { self.lots.below(4) };
        for _ in 0..changes {
            self.vary(&mut wishes);
        }
        (seed, wishes)
    }

    fn vary(&mut self, wishes: &mut Vec<Saved>) {
        match self.lots.below(6) {
            0 if !wishes.is_empty() => {
                let at = self.lots.below(wishes.len());
                wishes.swap_remove(at);
            }
            1 if !wishes.is_empty() => {
                let at = self.lots.below(wishes.len());
                wishes[at].3 = !wishes[at].3;
            }
            2 if !wishes.is_empty() => {
                let at = self.lots.below(wishes.len());
                if let Some(wish) = self.wish() {
                    wishes[at] = wish;
                }
            }
            _ if wishes.len() < MOST_WISHES => wishes.extend(self.wish()),
            _ => {}
        }
    }

    /// That an event that is known reads from one that is known to write its object, or from none.
    fn wish(&mut self) -> Option<Saved> {
        // What only one event does has no order.
        let objects: Vec<u64> = self.events.iter().filter(|(_, e)| e.1.len() > 1).map(|(&object, _)| object).collect();
        let object = *self.lots.one_of(&objects)?;
        let (writers, all) = &self.events[&object];
        let reader = *self.lots.one_of(all)?;
        let writer = match self.lots.below(writers.len() + 1) {
            0 => 0,
            n => writers[n - 1],
        };
        Some((object, writer, reader, self.lots.below(4) > 0))
    }

    fn learn(&mut self, wishes: &[Saved], trace: &Trace) {
        let mut new = false;
        for &Pair { object, writer, event, writes, .. } in &trace.pairs {
            if self.pairs.len() >= MOST_PAIRS || !self.pairs.insert((object, writer, event)) {
                continue;
            }
            new = true;
            let (writers, all) = self.events.entry(object).or_default();
            if !all.contains(&event) {
                all.push(event);
            }
            if writes != 0 && !writers.contains(&event) {
                writers.push(event);
            }
        }
        let known = || self.kept.iter().any(|(kept, _)| kept == wishes);
        if new && self.kept.len() < MOST_KEPT && !known() {
            self.kept.push((wishes.to_vec(), 0));
        }
    }
}

impl Search for Rff {
    fn next(&mut self) -> Option<Schedule> {
        let start = self.again.pop().unwrap_or_else(|| self.draw());
        self.ticket += 1;
        let (ticket, policy, pct_fair) = (self.ticket, Policy::RFF, Pct::FAIR);
        let wish = |&(object, writer, reader, wanted): &Saved| Wish::new(object, writer, reader, wanted);
        let wishes = start.1.iter().map(wish).collect();
        let seed = start.0;
        self.running.insert(ticket, start);
        Some(Schedule { ticket, policy, seed, pct_fair, wishes, blind: true, ..Schedule::default() })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.transitions += trace.steps.len() as u64 + trace.unrecorded;
        if let Some((_, wishes)) = self.running.remove(&ticket) {
            self.learn(&wishes, trace);
        }
    }

    fn parallel(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let again: Vec<&Start> = self.again.iter().chain(self.running.values()).collect();
        let state = (self.lots.state, self.ticket, again, &self.kept);
        Some(codec::encode(&(state, &self.pairs, &self.events, self.transitions)))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let ((state, ticket, again, kept), pairs, events, transitions) = codec::decode(bytes)?;
        let kept: Vec<(Vec<Saved>, u64)> = kept;
        if kept.is_empty() {
            return Err("nothing is kept to be varied".into());
        }
        codec::counted([ticket, transitions].into_iter().chain(kept.iter().map(|k| k.1)))?;
        *self = Rff { lots: Lots { state }, ticket, again, running: BTreeMap::new(), kept, pairs, events, transitions };
        Ok(())
    }

    fn limit(&self) -> Option<Reason> {
        Some(Reason::Random)
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_varied_by_another_seed() {
        let mut first = Rff::new(1);
        let pair = |writer, event| Pair { object: 7, writer, event, writes: 1, at: 0 };
        for _ in 0..20 {
            let ticket = first.next().expect("there is always another one").ticket;
            first.done(ticket, &Trace { pairs: vec![pair(0, 3), pair(3, 5 + ticket)], ..Trace::default() });
        }
        let kept: BTreeSet<Vec<Saved>> = first.kept.iter().map(|(wishes, _)| wishes.clone()).collect();
        assert!(kept.len() > 2, "{kept:?}");
        let saved = first.save().expect("it can be saved");
        let draws = |seed| {
            let mut rff = Rff::after(seed, &saved).expect("it was saved");
            assert_eq!(rff.kept.iter().map(|(wishes, _)| wishes.clone()).collect::<BTreeSet<_>>(), kept);
            (0..20).filter_map(|_| rff.next()).map(|schedule| schedule.seed).collect::<Vec<_>>()
        };
        assert_eq!(draws(2), draws(2));
        assert_ne!(draws(2), draws(3));
        assert!(Rff::after(2, &saved[..saved.len() / 2]).is_err());
    }
}
