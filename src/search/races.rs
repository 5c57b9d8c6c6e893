//! Where one execution could have gone another way, for a search whose bound forbids to look for one representative of
//! each trace: Coons, Musuvathi, McKinley, Bounded Partial-Order Reduction (OOPSLA 2013), Sections 3 and 5.
//!
//! Every operation, performed or blocked in the end, is compared with every step that was made while it was pending, and
//! with the last step of each other thread before that: if they are dependent, the operation is to be tried before that
//! step, and, since a preemption there may be too much, also before the block of steps of one thread that the step belongs
//! to, where a switch costs no more than the one that was made.
//!
//! That holds even for a step that lets the operation go on, so that the two cannot change places: its thread, run before
//! that step up to the operation, blocks there, and then switching to any thread costs nothing.
//!
//! Each execution is looked at by itself: the numbers of threads and objects in it need not mean the same elsewhere.

use std::collections::BTreeSet;

use vsrun_model::arena::Seen;
use vsrun_model::depend::as_it_stood;
use vsrun_model::{dependent_after, imprint, may_be_coenabled, Act, Effects, End, Tid};

use super::api::Watch;
use super::clock::{add, contains, join, Clock};
use crate::trace::Trace;

/// A thread that is to be tried in a state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Point {
    /// The state: before the step of that index.
    pub at: usize,
    /// The thread, by its number in the trace. It is enabled there.
    pub thread: Tid,
    /// The race is not one for an object that both operations name.
    pub wide: bool,
}

/// True if threads may have been enabled in the last state all the same.
fn ended_early(end: End) -> bool {
    !matches!(end, End::FINISHED | End::DEADLOCK | End::SLEEP_BLOCKED | End::DEPTH | End::MISMATCH | End::WAITS_OUTSIDE)
}

/// An operation that stood, and was performed or not, after the first `end` steps.
#[derive(Clone, Copy)]
struct Pending<'a> {
    act: &'a Act,
    did: Effects,
    /// The first state in which it was pending.
    origin: usize,
    end: usize,
    /// Of the operation as it was in all these states.
    imprint: u64,
}

/// A trace with what happens before what in it. All its states are recorded.
struct Run<'a> {
    trace: &'a Trace,
    /// What the steps did beyond their operations.
    did: Vec<Effects>,
    /// Of the steps.
    imprints: Vec<u64>,
    clocks: Vec<Clock>,
    points: BTreeSet<Point>,
    watch: &'a Watch,
    given_up: bool,
}

/// What is to be tried because of the races of the steps from `fresh` on, and of what is blocked in the end. `None`: it was given up, since
/// vsrun is to end: what is done for each step grows with the steps before it.
pub(super) fn points(trace: &Trace, fresh: usize, watch: &Watch) -> Option<BTreeSet<Point>> {
    let early = ended_early(trace.end);
    let mut did: Vec<Effects> = trace.steps.iter().map(|s| s.did).collect();
    if let Some(last) = did.last_mut().filter(|_| early) {
        *last = last.with(Effects::LAST);
    }
    let imprints = trace.steps.iter().zip(&did).map(|(s, &did)| imprint(&s.act, did)).collect();
    let mut run = Run { trace, did, imprints, clocks: Vec::new(), points: BTreeSet::new(), watch, given_up: false };
    run.look(fresh, early);
    (!run.given_up).then_some(run.points)
}

/// By thread number, the first state in which its operation was pending, and the imprint of that since then.
type Standing = Vec<Option<(usize, u64)>>;

impl<'a> Run<'a> {
    fn look(&mut self, fresh: usize, early: bool) {
        let trace = self.trace;
        let mut standing = Standing::new();
        for n in 0..trace.steps.len() {
            if self.gives_up() {
                return;
            }
            stand(&mut standing, n, &trace.seen[n]);
            let step = &trace.steps[n];
            let p = self.pending(&standing, &step.act, self.did[n], n);
            let mut clock = self.clock_before(&p);
            if n >= fresh {
                self.races(&p, &clock, None);
            }
            add(&mut clock, step.act.tid, n);
            self.clocks.push(clock);
            if n >= fresh {
                let after = if early && n + 1 == trace.steps.len() { &[] } else { self.state(n + 1) };
                self.ended_by(n, after, &standing);
            }
            if let Some(moved) = standing.get_mut(step.act.tid as usize) {
                *moved = None;
            }
        }
        if !early {
            stand(&mut standing, trace.steps.len(), &trace.last);
            for s in &trace.last {
                let p = self.pending(&standing, &s.act, Effects::NONE, trace.steps.len());
                let clock = self.clock_before(&p);
                self.races(&p, &clock, None);
            }
        }
    }

    fn gives_up(&mut self) -> bool {
        self.given_up |= self.watch.ends();
        self.given_up
    }

    fn state(&self, n: usize) -> &'a [Seen] {
        self.trace.seen.get(n).unwrap_or(&self.trace.last)
    }

    /// Step `n` has ended threads, all if nothing is left `after` it: what they had pending could have come first.
    fn ended_by(&mut self, n: usize, after: &[Seen], standing: &Standing) {
        let mover = self.trace.steps[n].act.tid;
        for s in &self.trace.seen[n] {
            if s.act.tid != mover && !after.iter().any(|a| a.act.tid == s.act.tid) {
                let p = self.pending(standing, &s.act, Effects::NONE, n + 1);
                let clock = self.clock_before(&p);
                self.races(&p, &clock, Some(n));
            }
        }
    }

    fn pending<'b>(&self, standing: &Standing, act: &'b Act, did: Effects, end: usize) -> Pending<'b> {
        let stood = standing.get(act.tid as usize).copied().flatten();
        let (origin, before) = stood.unwrap_or((end, 0));
        Pending { act, did, origin, end, imprint: before | imprint(act, did) }
    }

    /// The operation as it was in the state before step `j`, if it was pending there.
    fn stood(&self, p: &Pending, j: usize) -> Option<&'a Act> {
        let here = |s: &&Seen| s.act.tid == p.act.tid;
        self.trace.seen[j].iter().find(here).filter(|_| p.origin <= j).map(|s| &s.act)
    }

    /// Whether step `j` and `p` are dependent: as it was performed, or as it stood when step `j` was made.
    fn meets(&self, j: usize, p: &Pending) -> bool {
        if self.imprints[j] & p.imprint == 0 {
            return false;
        }
        let (e, did) = (&self.trace.steps[j].act, self.did[j]);
        let stood = self.stood(p, j).map(|q| as_it_stood(q, p.act));
        dependent_after(e, did, p.act, p.did, false) || stood.is_some_and(|q| dependent_after(e, did, &q, p.did, false))
    }

    /// What happened before `p` became pending.
    fn clock_of_origin(&self, p: &Pending) -> Clock {
        p.origin.checked_sub(1).map_or(Clock::new(), |n| self.clocks[n].clone())
    }

    /// What happens before `p`.
    fn clock_before(&self, p: &Pending) -> Clock {
        let mut clock = self.clock_of_origin(p);
        for j in (0..p.end.min(self.clocks.len())).rev() {
            let thread = self.trace.steps[j].act.tid;
            if self.imprints[j] & p.imprint != 0 && !contains(&clock, thread, j) && self.meets(j, p) {
                join(&mut clock, &self.clocks[j]);
            }
        }
        clock
    }

    /// Seeks the steps that `p` could have come before; `ended_by`: one that it must have come before.
    fn races(&mut self, p: &Pending, clock: &Clock, ended_by: Option<usize>) {
        let known = self.clock_of_origin(p);
        let mut found: BTreeSet<Tid> = BTreeSet::new();
        for j in (0..p.end).rev() {
            let (imprint, step) = (self.imprints[j], &self.trace.steps[j]);
            if ended_by != Some(j) && imprint & p.imprint == 0 || step.act.tid == p.act.tid {
                continue;
            }
            let thread = step.act.tid;
            if j < p.origin && (found.contains(&thread) || contains(&known, thread, j)) {
                continue;
            }
            if ended_by == Some(j) || self.meets(j, p) {
                if self.gives_up() {
                    return;
                }
                let enabled_together = may_be_coenabled(&step.act, self.stood(p, j).unwrap_or(p.act));
                if j < p.origin && enabled_together {
                    found.insert(thread);
                }
                let wide = imprint == u64::MAX || p.imprint == u64::MAX;
                self.add(j, j, p, clock, wide);
                self.add(self.block(j), j, p, clock, wide);
            }
        }
    }

    /// The first of the steps of one thread up to step `j`.
    fn block(&self, j: usize) -> usize {
        let thread = self.trace.steps[j].act.tid;
        (0..j).rev().take_while(|&k| self.trace.steps[k].act.tid == thread).last().unwrap_or(j)
    }

    /// Adds what is to be tried in a state so that `p` comes before step `j`: its thread or, where that is not enabled,
    /// every other that has moved before `p` for it.
    fn add(&mut self, at: usize, j: usize, p: &Pending, clock: &Clock, wide: bool) {
        let enabled = |t: Tid| self.trace.seen[at].iter().any(|s| s.act.tid == t && s.choices > 0);
        let mut first: Vec<Tid> = Vec::new();
        if enabled(p.act.tid) {
            first.push(p.act.tid);
        } else {
            let mut seen: BTreeSet<Tid> = BTreeSet::from([self.trace.steps[j].act.tid]);
            for (k, step) in self.trace.steps.iter().enumerate().take(p.end).skip(at) {
                let thread = step.act.tid;
                if seen.insert(thread) && contains(clock, thread, k) && enabled(thread) {
                    first.push(thread);
                }
            }
        }
        let taken = self.trace.steps[at].act.tid;
        self.points.extend(first.into_iter().filter(|&t| t != taken).map(|thread| Point { at, thread, wide }));
    }
}

/// Notes what is pending in state `n`.
fn stand(standing: &mut Standing, n: usize, seen: &[Seen]) {
    for s in seen {
        let thread = s.act.tid as usize;
        if standing.len() <= thread {
            standing.resize(thread + 1, None);
        }
        let imprint = imprint(&s.act, Effects::NONE);
        let (origin, before) = standing[thread].unwrap_or((n, 0));
        standing[thread] = Some((origin, before | imprint));
    }
}
