//! Which returns of calls are to be operations of their own, since signals answer them: see `vsrun_model::objects::answer`.
//!
//! A signal answers the last step of a thread that it reaches if that step happened before something that its sender did before. That is told by what steps
//! depend on, not by the order in which this execution had them, so that all executions of one trace tell the same, whatever search they are of.

use std::collections::BTreeSet;

use vsrun_model::answer::STARTS;
use vsrun_model::arena::Step;
use vsrun_model::sharing::{name_of_return, name_of_returns};
use vsrun_model::signal::SignalSent;
use vsrun_model::{dependent_after, Arena, Effects, Kind, Tid, NONE};

use super::clock::{add, contains, join, Clock};
use super::index::{Index, Sought};

/// The names of the returns that signals have answered in the execution that stands in the arena, but for those that were known.
pub fn answered(arena: &Arena) -> BTreeSet<u64> {
    let world = &arena.world;
    let mut all = BTreeSet::new();
    if world.sent_lost {
        // It may have been anything.
        arena.trace().iter().for_each(|step| note(arena, step.act.tid, step.act.op.kind, &mut all));
        let kinds = [Kind::FORK, STARTS];
        (0..world.threads.len).for_each(|t| kinds.iter().for_each(|&kind| note(arena, t, kind, &mut all)));
    }
    let recorded = |sent: &&SignalSent| sent.at > 0 && sent.at <= arena.trace().len() as u64;
    let all_sent: Vec<&SignalSent> = world.sent.as_slice().iter().filter(recorded).collect();
    let Some(last) = all_sent.iter().map(|sent| sent.at as usize).max() else { return all };
    for sent in all_sent.iter().filter(|sent| sent.starting != NONE) {
        note(arena, sent.starting, STARTS, &mut all);
    }
    let concerned: Vec<Tid> =
        (0..world.threads.len).filter(|&t| all_sent.iter().any(|sent| reaches(arena, sent, t))).collect();
    let unknown = |step: &Step| concerned.contains(&step.act.tid) && is_unknown(arena, step.act.tid, step.act.op.kind);
    // Most executions have nothing that could be told.
    if arena.trace()[..last].iter().any(unknown) || concerned.iter().any(|&t| is_unknown(arena, t, Kind::FORK)) {
        let past = Past::of(arena, last);
        for sent in all_sent {
            for &u in concerned.iter().filter(|&&u| reaches(arena, sent, u)) {
                past.answered(u, sent.at as usize - 1)
                    .into_iter()
                    .flatten()
                    .for_each(|kind| note(arena, u, kind, &mut all));
            }
        }
    }
    all
}

/// Thread `u` is one of those that the signal is for, and did not send it.
fn reaches(arena: &Arena, sent: &SignalSent, u: Tid) -> bool {
    let sender = arena.trace()[sent.at as usize - 1].act.tid;
    u != sender && arena.world.threads[u].pid == sent.pid && (sent.tid == NONE || sent.tid == u)
}

fn is_unknown(arena: &Arena, t: Tid, kind: Kind) -> bool {
    !kind.only_looks() && !arena.is_known(name_of_return(arena.world.threads[t].uid, kind))
}

fn note(arena: &Arena, t: Tid, kind: Kind, all: &mut BTreeSet<u64>) {
    if is_unknown(arena, t, kind) {
        let uid = arena.world.threads[t].uid;
        all.extend([name_of_return(uid, kind), name_of_returns(uid)]);
    }
}

/// What happened before what in the first steps of an execution.
struct Past<'a> {
    arena: &'a Arena,
    /// By step: what happened before the step before it of its thread, or before that was created, and that step.
    own: Vec<Clock>,
    /// By step: what happened before it, and itself.
    clocks: Vec<Clock>,
}

impl Past<'_> {
    /// Of the first `len` steps.
    fn of(arena: &Arena, len: usize) -> Past<'_> {
        let mut past = Past { arena, own: Vec::with_capacity(len), clocks: Vec::with_capacity(len) };
        let mut index = Index::default();
        let mut last: Vec<Option<usize>> = vec![None; arena.world.threads.len as usize];
        for n in 0..len {
            let act = &arena.trace()[n].act;
            let did = past.did(n);
            let before = last[act.tid as usize].replace(n).or_else(|| past.creation(act.tid));
            let own = before.map_or(Clock::new(), |before| past.clocks[before].clone());
            let mut clock = own.clone();
            let mut sought = Sought::new();
            sought.add(act, did);
            let mut candidates = index.candidates(n, &sought);
            while let Some(k) = candidates.next(&clock) {
                if dependent_after(&arena.trace()[k].act, past.did(k), act, did, false) {
                    join(&mut clock, &past.clocks[k]);
                }
            }
            add(&mut clock, act.tid, n);
            index.add(n, act, did);
            past.own.push(own);
            past.clocks.push(clock);
        }
        past
    }

    /// What the last step did is recorded when the next one is chosen.
    fn did(&self, n: usize) -> Effects {
        let did = self.arena.trace()[n].did;
        if n + 1 == self.arena.trace().len() {
            did.with(self.arena.world.did)
        } else {
            did
        }
    }

    /// The step in which a thread was created. `None`: it was there before.
    fn creation(&self, t: Tid) -> Option<usize> {
        usize::try_from(self.arena.world.threads[t].begun).ok()?.checked_sub(1)
    }

    /// What a signal that step `by` sent to thread `u` answers: what that has done last, and that it has created another one since.
    fn answered(&self, u: Tid, by: usize) -> [Option<Kind>; 2] {
        let steps = self.arena.trace();
        let done = (0..by).rev().find(|&n| steps[n].act.tid == u);
        let creates =
            |v: Tid| self.arena.world.threads[v].creator == u && self.creation(v).is_some_and(|n| Some(n) == done);
        let created = (0..self.arena.world.threads.len).any(creates).then_some(Kind::FORK);
        let op = &steps[by].act.op;
        // What this step tells its thread, that did not know before.
        let tells_first = matches!(op.kind, Kind::KILL | Kind::CANCEL) || !op.hears();
        let all = &self.clocks[by];
        let known = if tells_first { &self.own[by] } else { all };
        let last = all.get(u as usize).copied().unwrap_or(0) as usize;
        let moved = match last.checked_sub(1) {
            Some(moved) => {
                (contains(known, u, moved) && steps[moved].act.op.kind != Kind::END).then(|| self.last_kind(u, moved))
            }
            None => self.is_begun_before(u, by, known).then_some(Kind::FORK),
        };
        [moved, created]
    }

    /// What thread `u` has done last up to step `n` that somebody could be let go by.
    fn last_kind(&self, u: Tid, n: usize) -> Kind {
        let steps = &self.arena.trace()[..=n];
        let counts = |step: &&Step| step.act.tid == u && !step.act.op.kind.only_looks();
        steps.iter().rfind(counts).map_or(Kind::FORK, |step| step.act.op.kind)
    }

    /// In what is `known` there is something that thread `u`, which has done nothing before step `by`, was created before.
    fn is_begun_before(&self, u: Tid, by: usize, known: &Clock) -> bool {
        let steps = self.arena.trace();
        if self.arena.world.threads[u].begun > by as u64 {
            return false;
        }
        let heard = |n: usize, t: Tid| steps[n].act.tid == t && steps[n].act.op.hears();
        let created = self.creation(u);
        known.iter().zip(0..).any(|(&end, t)| match created {
            Some(n) if t == steps[n].act.tid => (n + 1..end as usize).any(|n| heard(n, t)),
            Some(n) => end > 0 && contains(&self.clocks[end as usize - 1], steps[n].act.tid, n),
            None => end > 0,
        })
    }
}
