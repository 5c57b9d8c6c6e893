//! What the search is to run so that a race goes the other way: the sequence, and how it is inserted. A part of [`super::reduction`].

use vsrun_model::Effects;

use super::clock::{contains, join};
use super::insert::{begins, initials};
use super::reduction::{Insertion, Reduction, Run};
use super::tree::{Pending, Race, Step};

impl Reduction {
    /// Inserts the sequence in which step `n` comes before the steps `race.taken`: all steps of the execution that do not happen
    /// after these, then step `n`. Those behind step `n` are not needed for that, but they matter to what may cover the
    /// sequence (the paper's notdep is of the whole execution).
    ///
    /// Other executions with the same steps up to `n` continue otherwise. There the race is looked at again, unless what leads
    /// to step `n` is covered whatever follows, see [`Tree::leads`](super::tree::Tree::leads): which it is not if what follows it may come before it.
    pub(super) fn put(&mut self, run: &Run, n: usize, race: Race) {
        let at = race.taken[0];
        // It takes steps up to the end of the execution, and the tree compares sequences of that length.
        if self.gives_up(2 * (run.path.len() - at)) {
            return;
        }
        let free = |from: usize, to: usize| {
            let stays = |&k: &usize| k != n && !self.follows(run, k, &race.taken);
            let step = |k: usize| Step { did: self.did_without(run, k, &race.taken), ..*self.step(run, k) };
            (from..to).filter(stays).map(step).collect::<Vec<Step>>()
        };
        let before = free(at, n);
        let settled: Vec<&Step> = before.iter().chain(&race.last).collect();
        // It may be blocked after the last step, or killed by step `n`.
        let performed = |&at: &usize| {
            let step = self.tree.node(at).step;
            step.zip(race.last.first().copied()).is_some_and(|(step, p)| step.thread() == p.thread())
        };
        let Some(step) = run.path.get(n + 1).copied().filter(performed) else {
            return self.insert_steps(run.path[at], &settled, race.unsure);
        };
        let after = free(n, run.path.len() - 1);
        let whole: Vec<&Step> = before.iter().chain(&after).chain(&race.last).collect();
        self.insert_steps(run.path[at], &whole, race.unsure);
        if race.otherwise || !self.tree.leads(run.path[at], &settled) {
            self.tree.node_mut(step).unsettled.push(race);
            self.unsettled.add(&self.tree, step);
        }
    }

    /// Looks again at races of step `n`, which has been run before, for what follows it now.
    pub(super) fn settle(&mut self, run: &Run, n: usize) {
        for race in std::mem::take(&mut self.tree.node_mut(run.path[n + 1]).unsettled) {
            if self.gives_up(run.path.len() - race.taken[0]) {
                return;
            }
            self.put(run, n, race);
        }
    }

    /// [`Reduction::insert_first`] in state `at` of the steps `free`, none of which happens after what `p` is to come before,
    /// and `last`, which begins with `p`. A thread that slept here may have moved in the execution all the same: what a step
    /// did beyond its operation has woken it. That it covers all of that does not mean that it covers the sequence without it.
    pub(super) fn insert_first_of(
        &mut self,
        run: &Run,
        at: usize,
        free: &[usize],
        p: &Pending,
        last: &[Step],
        did: Effects,
    ) {
        let steps = |indices: &[usize]| {
            indices.iter().map(|&k| *self.step(run, k)).chain(last.iter().copied()).collect::<Vec<Step>>()
        };
        let (v, node) = (steps(free), run.path[at]);
        let moved = |q: &&Step| {
            v.iter().any(|s| s.thread() == q.thread()) && begins(q, &v[..], &self.tree.node(node).pending, self.piece)
        };
        let mut sleepers = self.tree.node(node).sleep.iter().filter(moved).map(|q| q.thread()).peekable();
        let past = sleepers.peek().is_some().then(|| {
            // What happens before `p` if only these steps have been made.
            let mut clock = self.clock_of_origin(run, p.origin);
            for &k in free.iter().filter(|&&k| self.meets(run, k, p, did)) {
                join(&mut clock, self.clock(run, k));
            }
            let before = |k: &usize| contains(&clock, self.step(run, *k).thread(), *k);
            steps(&free.iter().copied().filter(before).collect::<Vec<usize>>())
        });
        let past = past.filter(|past| sleepers.any(|q| !past.iter().any(|s| s.thread() == q)));
        self.insert_first(node, &v);
        if let Some(past) = past {
            self.insert_first(node, &past);
        }
    }

    /// Inserts the sequence, or one of its initial steps.
    pub(super) fn insert(&mut self, at: usize, v: Vec<Step>, unsure: bool) {
        match self.insertion {
            Insertion::Sequence => self.insert_steps(at, &v.iter().collect::<Vec<&Step>>(), unsure),
            Insertion::FirstStep if self.is_others(at, || v.iter()) => {}
            Insertion::FirstStep => self.insert_first(at, &v),
        }
    }

    /// Inserts the whole sequence.
    fn insert_steps(&mut self, at: usize, v: &[&Step], unsure: bool) {
        if !self.is_others(at, || v.iter().copied()) {
            self.tree.insert(at, v, unsure);
        }
    }

    /// Above a piece everything that is enabled is a branch, or sleeps. What sleeps there wakes by what depends on it. Where two steps depend on each other
    /// only since the execution ended after one of them (an assertion that fails outside of what is visible), that is not known there, and nobody else
    /// looks at the other order. The step that it ended after comes before the other one then, see `comes_after`.
    fn is_others<'a, I: DoubleEndedIterator<Item = &'a Step>>(&self, at: usize, v: impl Fn() -> I) -> bool {
        let by_its_end = || v().rev().skip(1).any(|step| step.did.has(Effects::LAST));
        self.tree.node(at).depth < self.base && !by_its_end()
    }

    /// Inserts a step that can come first in `v` and is enabled, or all that are enabled if none of them is: then nothing is
    /// known of what lets `v` begin.
    fn insert_first(&mut self, at: usize, v: &[Step]) {
        let enabled = |s: &Step| self.pending_of(at, s.thread()).is_some_and(|p| p.choices > 0);
        let first = initials(v, &self.tree.node(at).pending).find(enabled);
        if let Some(first) = first {
            self.tree.insert_first(at, v, first);
            return;
        }
        let able = self.tree.node(at).pending.iter().filter(|p| p.choices > 0);
        let all: Vec<Step> = able.map(|p| Step { act: p.act, value: 0, did: Effects::NONE }).collect();
        for step in all {
            self.tree.insert_first(at, &[step], step);
        }
    }
}
