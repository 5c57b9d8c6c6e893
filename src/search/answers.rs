//! Which returns of calls are to be operations of their own, since signals answer them: see `vsrun_model::objects::answer`.
//!
//! A signal answers the last step of a thread that it reaches if that step happened before something that its sender did before. That is told by what steps
//! depend on, not by the order in which this execution had them, so that all executions of one trace tell the same, whatever search they are of.

use std::collections::BTreeSet;

use vsrun_model::answer::STARTS;
use vsrun_model::arena::Step;
use vsrun_model::sharing::{name_of_return, name_of_returns};
use vsrun_model::signal::SignalSent;
use vsrun_model::{Arena, Kind, Op, Tid, NONE};

use super::clock::{contains, Clock};
use super::past::Past;

/// The names of the returns that signals have answered in the execution that stands in the arena, but for those that were known.
pub fn answered(arena: &Arena) -> BTreeSet<u64> {
    Answers::default().of(arena)
}

/// What signals answer in executions that come one after the other: of what one has in common with the one before is only asked once.
#[derive(Debug, Default)]
pub struct Answers {
    /// The first steps of the last execution, with all that they did.
    steps: Vec<Step>,
    /// What happened before what in them; of the first ones.
    past: Past,
    /// Signals that were sent by the first so many of them have answered nothing that was not known.
    settled: usize,
}

impl Answers {
    /// Of the execution that stands in the arena; what is known may only become more.
    pub fn of(&mut self, arena: &Arena) -> BTreeSet<u64> {
        let world = &arena.world;
        let mut all = BTreeSet::new();
        if world.sent_lost {
            // It may have been anything.
            arena.trace().iter().for_each(|step| note(arena, step.act.tid, step.act.op.kind, &mut all));
            let kinds = [Kind::FORK, STARTS];
            (0..world.threads.len).for_each(|t| kinds.iter().for_each(|&kind| note(arena, t, kind, &mut all)));
        }
        let recorded = |sent: &&SignalSent| sent.at > 0 && sent.at <= arena.trace().len() as u64;
        let mut all_sent: Vec<&SignalSent> = world.sent.as_slice().iter().filter(recorded).collect();
        for sent in all_sent.iter().filter(|sent| sent.starting != NONE) {
            note(arena, sent.starting, STARTS, &mut all);
        }
        let Some(last) = all_sent.iter().map(|sent| sent.at as usize).max() else { return all };
        self.turn_to(arena, last);
        let settled = self.settled as u64;
        all_sent.retain(|sent| sent.at > settled);
        let concerned: Vec<Tid> =
            (0..world.threads.len).filter(|&t| all_sent.iter().any(|sent| reaches(arena, sent, t))).collect();
        let unknown =
            |step: &Step| concerned.contains(&step.act.tid) && is_unknown(arena, step.act.tid, step.act.op.kind);
        // Most executions have nothing that could be told.
        if self.steps.iter().any(unknown) || concerned.iter().any(|&t| is_unknown(arena, t, Kind::FORK)) {
            self.past.extend(&self.steps, |n| self.steps[n].did, |t| creation(arena, t), Op::hears);
            let run = Run { arena, past: &self.past };
            for sent in all_sent {
                for &u in concerned.iter().filter(|&&u| reaches(arena, sent, u)) {
                    let answered = run.answered(u, sent.at as usize - 1);
                    answered.into_iter().flatten().for_each(|kind| note(arena, u, kind, &mut all));
                }
            }
        }
        if all.is_empty() {
            self.settled = last;
        }
        all
    }

    /// Keeps what the execution has in common with the one before, and takes over its first `len` steps.
    fn turn_to(&mut self, arena: &Arena, len: usize) {
        let steps = &arena.trace()[..len];
        // What the last step did is recorded when the next one is chosen.
        let whole = |(n, step): (usize, &Step)| match n + 1 == arena.trace().len() {
            true => Step { did: step.did.with(arena.world.did), ..*step },
            false => *step,
        };
        let bare = |step: &Step| Step { seen_at: 0, n_seen: 0, ..*step };
        let come = || steps.iter().enumerate().map(whole).map(|step| bare(&step));
        let common = self.steps.iter().zip(come()).take_while(|(old, new)| **old == *new).count();
        self.steps.truncate(common);
        self.past.cut(common);
        self.settled = self.settled.min(common);
        self.steps.extend(come().skip(common));
    }
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

/// The step in which a thread was created. `None`: it was there before.
fn creation(arena: &Arena, t: Tid) -> Option<usize> {
    usize::try_from(arena.world.threads[t].begun).ok()?.checked_sub(1)
}

/// The execution that stands in the arena, with what happened before what in it.
struct Run<'a> {
    arena: &'a Arena,
    past: &'a Past,
}

impl Run<'_> {
    /// What a signal that step `by` sent to thread `u` answers: what that has done last, and that it has created another one since.
    fn answered(&self, u: Tid, by: usize) -> [Option<Kind>; 2] {
        let steps = self.arena.trace();
        let done = (0..by).rev().find(|&n| steps[n].act.tid == u);
        let world = &self.arena.world;
        let there = |v: Tid| world.threads[v].creator == u && world.threads[v].begun <= by as u64;
        let creates = |v: Tid| there(v) && creation(self.arena, v) == done;
        let created = (0..world.threads.len).any(creates).then_some(Kind::FORK);
        let op = &steps[by].act.op;
        // What this step tells its thread, that did not know before.
        let tells_first = matches!(op.kind, Kind::KILL | Kind::CANCEL) || !op.hears();
        let all = &self.past.clocks[by];
        let known = if tells_first { &self.past.own[by] } else { all };
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
        let created = creation(self.arena, u);
        known.iter().zip(0..).any(|(&end, t)| match created {
            Some(n) if t == steps[n].act.tid => (n + 1..end as usize).any(|n| heard(n, t)),
            Some(n) => end > 0 && contains(&self.past.clocks[end as usize - 1], steps[n].act.tid, n),
            None => (0..end as usize).any(|n| heard(n, t)),
        })
    }
}
