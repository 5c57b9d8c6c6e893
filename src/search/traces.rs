//! The yardstick of the reductions: every execution, as `naive` runs them, and how many Mazurkiewicz traces they are. A circle
//! of locks does not end an execution that could go on, as for `optimal`.

use std::collections::BTreeSet;

use vsrun_model::arena::{Seen, Step};
use vsrun_model::depend::TIMED_OUT;
use vsrun_model::{dependent_after, Act, Effects, End, Uid};

use super::api::Search;
use super::clock::{add, join, Clock};
use super::naive::Naive;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// A step in a partial order: thread, number among its steps, alternative, and by thread how many steps came before.
type Event = (Uid, u32, u32, Vec<(Uid, u32)>);

/// The search.
#[derive(Debug, Default)]
pub struct Traces {
    naive: Naive,
    orders: BTreeSet<Vec<Event>>,
}

impl Traces {
    /// A search that has not begun.
    pub fn new() -> Traces {
        Traces { naive: Naive::new(), orders: BTreeSet::new() }
    }
}

impl Search for Traces {
    fn next(&mut self) -> Option<Schedule> {
        let schedule = self.naive.next()?;
        Some(Schedule { record_back: schedule.prefix.len() as u32, past_cycles: true, ..schedule })
    }

    fn done(&mut self, ticket: u64, trace: &Trace) {
        self.orders.insert(order(trace));
        self.naive.done(ticket, trace);
    }

    fn parallel(&self) -> bool {
        true
    }

    fn frontier(&self) -> u64 {
        self.naive.frontier()
    }

    fn progress(&self) -> Option<f64> {
        self.naive.progress()
    }

    fn exhaustive(&self) -> bool {
        self.naive.exhaustive()
    }

    fn transitions(&self) -> u64 {
        self.naive.transitions()
    }

    fn traces(&self) -> Option<u64> {
        Some(self.orders.len() as u64)
    }
}

/// The partial order of an execution, all of whose states were recorded: the same for equivalent executions.
fn order(trace: &Trace) -> Vec<Event> {
    let uids: Vec<Uid> = trace.steps.iter().map(|s| s.act.uid).collect::<BTreeSet<_>>().into_iter().collect();
    let number = |uid: Uid| uids.binary_search(&uid).unwrap_or(0) as u32;
    let mut clocks: Vec<Clock> = Vec::with_capacity(trace.steps.len());
    for i in 0..trace.steps.len() {
        let mut clock = Clock::new();
        for j in (0..i).rev() {
            let known = clock.get(number(trace.steps[j].act.uid) as usize).is_some_and(|&c| c as usize > j);
            if !known && before(trace, j, i) {
                join(&mut clock, &clocks[j]);
            }
        }
        add(&mut clock, number(trace.steps[i].act.uid), i);
        clocks.push(clock);
    }
    let rank = |i: usize| trace.steps[..i].iter().filter(|s| s.act.uid == trace.steps[i].act.uid).count() as u32;
    let past = |i: usize| {
        let last = clocks[i].iter().enumerate().filter(|&(_, &c)| c > 0);
        last.map(|(t, &c)| (uids[t], rank(c as usize - 1))).collect()
    };
    let mut events: Vec<Event> =
        (0..trace.steps.len()).map(|i| (trace.steps[i].act.uid, rank(i), trace.steps[i].value, past(i))).collect();
    events.sort();
    events
}

/// Whether step `j` happens before the later step `i` by itself: it created its thread, or the two depend on each other, as
/// step `i` was performed or as it stood when step `j` was made.
fn before(trace: &Trace, j: usize, i: usize) -> bool {
    let (e, p) = (&trace.steps[j], &trace.steps[i]);
    let uid = p.act.uid;
    let pending = |n: usize| trace.seen.get(n).and_then(|seen: &Vec<Seen>| seen.iter().find(|s| s.act.uid == uid));
    if pending(j).is_none() && pending(j + 1).is_some() {
        return true;
    }
    let did = |n: usize, step: &Step| if n + 1 == trace.steps.len() { step.did.with(last(trace)) } else { step.did };
    let depends = |act: &Act| dependent_after(&e.act, did(j, e), act, did(i, p), false);
    let own = trace.steps[j + 1..i].iter().any(|s| s.act.uid == uid);
    let stood = pending(j).filter(|_| !own).map(|s| {
        let fate = s.act.fate & !TIMED_OUT | p.act.fate & TIMED_OUT;
        Act { fate, ..s.act }
    });
    depends(&p.act) || stood.is_some_and(|act| depends(&act))
}

fn last(trace: &Trace) -> Effects {
    match trace.end {
        End::FINISHED | End::DEADLOCK | End::CYCLE | End::DEPTH | End::WAITS_OUTSIDE => Effects::NONE,
        _ => Effects::LAST,
    }
}
