//! What happened before what in one execution, by which of its steps depend on each other: the same for all executions of a trace.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use vsrun_model::arena::Step;
use vsrun_model::{dependent_after, Effects, Op, Tid};

use super::clock::{add, join, Clock};
use super::index::{Index, Sought};
use crate::trace::Trace;

/// By step of an execution.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The step before it of its thread, or the one in which that was created, with all that happened before that.
    pub own: Vec<Clock>,
    /// What happened before it, and itself.
    pub clocks: Vec<Clock>,
    index: Index,
    /// By thread number, its steps.
    made: Vec<Vec<usize>>,
}

impl Past {
    /// Of these steps, which did that, and whose threads were created by these steps (`None`: before the first one). `hears`: what others did before a step comes
    /// before what its thread does after it.
    pub fn of(
        steps: &[Step],
        did: impl Fn(usize) -> Effects,
        creation: impl Fn(Tid) -> Option<usize>,
        hears: impl Fn(&Op) -> bool,
    ) -> Past {
        let mut past = Past::default();
        past.extend(steps, did, creation, hears);
        past
    }

    /// The same, of which the first steps are known.
    pub fn extend(
        &mut self,
        steps: &[Step],
        did: impl Fn(usize) -> Effects,
        creation: impl Fn(Tid) -> Option<usize>,
        hears: impl Fn(&Op) -> bool,
    ) {
        for (n, step) in steps.iter().enumerate().skip(self.clocks.len()) {
            let (act, did_now) = (&step.act, did(n));
            let thread = act.tid as usize;
            if self.made.len() <= thread {
                self.made.resize(thread + 1, Vec::new());
            }
            let before = self.made[thread].last().copied().or_else(|| creation(act.tid)).filter(|&before| before < n);
            self.made[thread].push(n);
            let own = before.map_or(Clock::new(), |before| self.clocks[before].clone());
            let mut clock = own.clone();
            if hears(&act.op) {
                let mut sought = Sought::new();
                sought.add(act, did_now);
                let mut candidates = self.index.candidates(n, &sought);
                while let Some(k) = candidates.next(&clock) {
                    if dependent_after(&steps[k].act, did(k), act, did_now, false) {
                        join(&mut clock, &self.clocks[k]);
                    }
                }
            }
            add(&mut clock, act.tid, n);
            self.index.add(n, act, did_now);
            self.own.push(own);
            self.clocks.push(clock);
        }
    }

    /// Forgets the steps from step `n` on.
    pub fn cut(&mut self, n: usize) {
        self.own.truncate(n);
        self.clocks.truncate(n);
        self.index.cut(n);
        for made in &mut self.made {
            made.truncate(made.partition_point(|&step| step < n));
        }
    }
}

/// A number of the trace that this is an execution of, for who compares searches: the same for all its executions, and for those of another one only by a
/// chance of one in 2^64.
pub fn number_of(trace: &Trace) -> u64 {
    let past = Past::of(&trace.steps, |n| trace.steps[n].did, |_| None, |_| true);
    let mut made: HashMap<Tid, u32> = HashMap::new();
    let mut count = |step: &Step| {
        let made = made.entry(step.act.tid).or_default();
        *made += 1;
        *made
    };
    // By step, how many its thread had made, with it.
    let nth: Vec<u32> = trace.steps.iter().map(&mut count).collect();
    let name = |n: usize| (trace.steps[n].act.uid.0, nth[n]);
    let numbers = trace.steps.iter().zip(&past.clocks).map(|(step, clock)| {
        let mut before: Vec<(u64, u32)> =
            clock.iter().filter(|&&end| end > 0).map(|&end| name(end as usize - 1)).collect();
        before.sort_unstable();
        let mut hasher = DefaultHasher::new();
        (step.act.uid.0, step.act.op.kind, step.value, before).hash(&mut hasher);
        hasher.finish()
    });
    numbers.fold(0, u64::wrapping_add)
}
