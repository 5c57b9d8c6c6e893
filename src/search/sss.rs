//! State-less search with persistent sets and sleep sets: Algorithm 2 of VeriSoft (Godefroid, POPL 97, Section 4), as
//! Stoller refines it (TR 536): sleep sets by conditional dependency, recorded while executing (Section 7, Figure 4),
//! persistent sets from bounds on what threads may still do (Section 8).
//!
//! An execution follows the default policy behind its prefix. In each state behind the prefix the transition that was
//! taken is the one with which the computation of a persistent set begins, so that what has been executed is part of the
//! search tree. [`Rules`] are where the other searches of the papers differ: what need not be visible, whether there are
//! persistent sets, what depends on what. Where they ask for another transition than the one taken, the rest of the
//! execution is thrown away.
//!
//! What the theory does not cover and this file adds:
//! * An execution that ends early (assertion, crash) leaves threads enabled; everything enabled in the
//!   state before its last transition is tried. A circle of locks ends none while something is enabled: the transition that closes it
//!   would sleep behind those of the others, and what it does to memory would never be seen beside what they do.
//! * A transition that leads to a yield depends on everything, which is known only once it has been performed: it is not
//!   put to sleep.
//! * Every operation executed is checked against its thread's bound. One outside it means that the persistent sets were
//!   wrong: the search notes it and begins again without bounds, so with all enabled transitions in every state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vsrun_model::arena::{Policy, Seen};
use vsrun_model::depend::GIVES_WAY;
use vsrun_model::{Act, Effects, End, Key, Kind, Tid, Uid};

use super::allowed::{Allowed, AllowedOps, ThreadOrigin, Unknown};
use super::api::{is_partial, Search};
use super::block::Block;
use super::kept::Tree;
use super::node::{AllVisible, Node, Rules, Sleeper, State, NO_PHASE};
use super::persistent::{persistent_set, Member};
use super::phase::Stage;
use crate::incomplete::Reason;
use crate::schedule::Schedule;
use crate::trace::{Born, Trace};

/// The search, with the rules of one of the papers' variants.
pub struct Selective<R> {
    pub(super) rules: R,
    bounds: Box<dyn Allowed>,
    known: BTreeMap<ThreadOrigin, AllowedOps>,
    /// The present path.
    pub(super) nodes: Vec<Node>,
    /// All that has been explored, where what was assumed wrongly is put right in it ([`super::refine`]).
    pub(super) tree: Option<Tree>,
    notes: Vec<String>,
    started: bool,
    pub(super) partial: bool,
    transitions: u64,
    sleep_blocked: u64,
}

/// VeriSoft's search.
pub type Sss = Selective<AllVisible>;

impl Sss {
    /// A search that has not begun.
    pub fn new(bounds: Box<dyn Allowed>) -> Sss {
        Selective::with(AllVisible, bounds)
    }
}

impl<R: Rules> Selective<R> {
    /// A search by `rules` that has not begun.
    pub(super) fn with(rules: R, bounds: Box<dyn Allowed>) -> Selective<R> {
        let (known, nodes) = (BTreeMap::new(), Vec::new());
        let notes = rules.caveat().map(String::from).into_iter().collect();
        let (started, partial, transitions, sleep_blocked) = (false, false, 0, 0);
        Selective { rules, bounds, known, nodes, tree: None, notes, started, partial, transitions, sleep_blocked }
    }

    /// Asks for the bounds of the threads that are pending in a state.
    fn learn(&mut self, origins: &[(ThreadOrigin, bool)]) {
        for (origin, exec) in origins {
            if !self.known.contains_key(origin) {
                let bound = if *exec { AllowedOps::anything() } else { self.bounds.of(origin) };
                self.known.insert(*origin, bound);
            }
        }
    }

    /// The threads to be tried in state `n` if that of `seed` is.
    fn chosen_with(&self, n: usize, seed: usize, objects: &[Key]) -> Vec<bool> {
        let node = &self.nodes[n];
        if !self.rules.persistent() {
            return vec![true; node.seen.len()];
        }
        let unknown = AllowedOps::anything();
        let bound = |origin: &ThreadOrigin| self.known.get(origin).unwrap_or(&unknown);
        let members = node.seen.iter().zip(&node.origins);
        let members: Vec<Member> = members.map(|(seen, (o, _))| Member { seen, bound: bound(o) }).collect();
        persistent_set(seed, &members, objects)
    }

    /// Adds the state before step `n` of a trace.
    fn enter(&mut self, trace: &Trace, n: usize) -> bool {
        let (seen, step) = (trace.seen[n].clone(), &trace.steps[n]);
        let Some(chosen) = seen.iter().position(|s| s.act.uid == step.act.uid) else { return false };
        let before = self.nodes.last();
        let sleep = n.checked_sub(1).map_or(Vec::new(), |b| self.sleep_after(b));
        let mut blocks = before.map_or(BTreeMap::new(), |b| b.blocks.clone());
        blocks.retain(|entry, _| sleep.iter().any(|s| s.entry == *entry));
        let held = before.map_or(BTreeSet::new(), Node::held_after);
        let origins: Vec<_> = seen.iter().map(|s| origin(&s.act, trace, before)).collect();
        self.learn(&origins);
        let (todo, value) = (vec![false; seen.len()], step.value);
        let place = self.tree.as_mut().map_or(0, Tree::place);
        self.nodes.push(Node { seen, origins, held, sleep, blocks, todo, chosen, value, place, ..Node::default() });
        true
    }

    /// State `n` as rules see it.
    pub(super) fn state<'a>(&'a self, n: usize, objects: &'a [Key]) -> State<'a> {
        self.nodes[n].state(objects, n.checked_sub(1).map(|b| &self.nodes[b]))
    }

    /// Decides what is to be tried in state `n`, which has just been entered. False: not what was taken.
    fn choose(&mut self, n: usize, objects: &[Key]) -> bool {
        let node = &self.nodes[n];
        let state = self.state(n, objects);
        let invisible = |&i: &usize| node.awake(i).is_some() && self.rules.invisible(&node.seen[i].act, state);
        let first = std::iter::once(node.chosen).chain(0..node.seen.len()).find(invisible);
        let asleep = node.asleep((node.act().tid, node.value));
        let (alone, taken) = (first.is_some(), !asleep && first.is_none_or(|i| i == node.chosen));
        let todo = match first {
            Some(i) => (0..node.seen.len()).map(|j| i == j).collect(),
            // A set that begins with what sleeps would hide what may end the execution early, which the theory does not know.
            None => {
                let awake = (0..node.seen.len()).find(|&i| node.awake(i).is_some()).filter(|_| asleep);
                self.chosen_with(n, awake.unwrap_or(node.chosen), objects)
            }
        };
        let node = &mut self.nodes[n];
        node.todo = todo;
        node.alone = alone;
        node.dropped = !taken;
        taken
    }

    /// Works out what step `n` of the trace did.
    fn execute(&mut self, n: usize, trace: &Trace) {
        let (after, objects) = (trace.seen.get(n + 1).unwrap_or(&trace.last), &trace.objects);
        self.nodes[n].did = trace.steps[n].did;
        if self.rules.sleeps_in_blocks() {
            self.nodes[n].touched = trace.touched.get(n).cloned();
        }
        let node = &self.nodes[n];
        let uid = node.act().uid;
        let stood = |s: &Seen| s.act.uid != uid && node.seen.iter().any(|p| p.act.uid == s.act.uid);
        let gives_way = |s: &Seen| s.act.op.kind == Kind::YIELD || s.act.fate & GIVES_WAY != 0;
        let yields = after.iter().any(|s| gives_way(s) && !stood(s));
        let ended = !after.iter().any(|s| s.act.uid == uid);
        let visible = node.alone && (yields || ended) && self.rules.shows_its_end();
        let more = if visible { self.chosen_with(n, node.chosen, objects) } else { Vec::new() };
        let node = &mut self.nodes[n];
        node.yields |= yields;
        node.alone &= !visible;
        if self.rules.sleeps_in_blocks() {
            self.note_block(n);
        }
        let node = &self.nodes[n];
        let creates = after.iter().any(|s| node.seen.iter().all(|p| p.act.uid != s.act.uid));
        let phase = self.rules.phase((node.act(), node.did), node.alone, creates, self.state(n, objects));
        // In the middle of a transaction: how far it goes depends on what lets the thread go on.
        let blocked = after.iter().find(|s| s.act.uid == uid && s.choices == 0);
        if let (Stage::Before, Some(blocked)) = (phase.stage, blocked) {
            let start = self.block_start(n);
            self.nodes[start].block.acts.push((blocked.act, Effects::NONE));
        }
        let before = n.checked_sub(1).and_then(|b| self.nodes[b].step);
        let node = &mut self.nodes[n];
        (node.phase, node.creates) = (phase, creates);
        if let Some(tree) = self.tree.as_mut().filter(|_| node.step.is_none()) {
            tree.enters(node, before);
        }
        for (todo, more) in node.todo.iter_mut().zip(more) {
            *todo |= more;
        }
    }

    /// Whose steps on the present path are not the going on of a block.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = Uid> + '_ {
        (0..self.nodes.len()).filter(|&n| self.block_start(n) == n).map(|n| self.nodes[n].act().uid)
    }

    /// The step with which the block of step `n` begins.
    fn block_start(&self, n: usize) -> usize {
        let goes_on = |&k: &usize| self.nodes[k].alone && self.nodes[k - 1].act().uid == self.nodes[n].act().uid;
        n - (1..=n).rev().take_while(goes_on).count()
    }

    /// Adds step `n` to its block.
    fn note_block(&mut self, n: usize) {
        let (start, node) = (self.block_start(n), &mut self.nodes[n]);
        let (act, mixed) = ((*node.act(), node.did), start < n && node.seen[node.chosen].choices > 1);
        let touched = std::mem::take(&mut node.touched);
        let block = &mut self.nodes[start].block;
        block.push(act, touched.as_ref());
        block.mixed |= mixed;
        self.nodes[n].touched = touched;
    }

    /// What is still asleep after step `n`.
    fn sleep_after(&self, n: usize) -> Vec<Sleeper> {
        if !self.rules.sleeps_in_blocks() {
            return self.nodes[n].sleep_after(&self.rules);
        }
        let start = self.block_start(n);
        let (first, steps) = (&self.nodes[start], &self.nodes[start..=n]);
        if steps.iter().any(|node| node.yields) {
            return Vec::new();
        }
        let mut moving = Block::default();
        steps.iter().for_each(|node| moving.push((*node.act(), node.did), node.touched.as_ref()));
        let stays =
            |s: &&Sleeper| first.block_here(s.entry).is_some_and(|block| !self.rules.wakes_block(&block, &moving));
        first.sleep.iter().filter(stays).copied().collect()
    }

    /// True if step `n` is within the bound of its thread.
    fn covered(&mut self, n: usize, objects: &[Key]) -> bool {
        let node = &self.nodes[n];
        let (origin, _) = &node.origins[node.chosen];
        let act = node.act();
        if self.known.get(origin).is_none_or(|bound| bound.covers(act, objects)) {
            return true;
        }
        let (uid, what) = (act.uid, act.op.kind.name());
        self.notes.push(format!(
            "thread {uid} performed {what} as its transition {}, which the analysis of the program had excluded: the \
             search began again without that analysis",
            origin.steps + 1
        ));
        self.bounds = Box::new(Unknown);
        self.known.clear();
        false
    }

    /// Begins again.
    fn restart(&mut self) {
        self.nodes.clear();
        self.tree = self.tree.take().map(|_| Tree::default());
        self.started = false;
    }

    /// Has the rules look at state `n` of the trace, to which the present path leads. False: the search begins again.
    fn accept(&mut self, n: usize, trace: &Trace) -> bool {
        let before = self.nodes.last();
        let held = before.map(Node::held_after).unwrap_or_default();
        let seen = trace.seen.get(n).filter(|_| n < trace.steps.len()).unwrap_or(&trace.last);
        let phase = before.map_or(&NO_PHASE, |b| &b.phase);
        let state = State { seen, objects: &trace.objects, held: &held, before: before.map(Node::act), phase };
        if self.rules.accept(state) {
            return true;
        }
        if self.tree.is_none() {
            self.restart();
            return false;
        }
        self.refine();
        true
    }

    /// Turns the last state of the path to its next step. False: it has none. `None`: there is nothing left.
    fn advance(&mut self) -> Option<bool> {
        if self.nodes.is_empty() && !self.reopen() {
            return None;
        }
        let node = self.nodes.last_mut()?;
        if let Some(tree) = &mut self.tree {
            tree.leaves(node);
        }
        Some(node.advance())
    }

    /// Follows the new part of a trace. False: something in it is missing.
    fn follow(&mut self, trace: &Trace) -> bool {
        let (known, total) = (self.nodes.len(), trace.steps.len());
        if let Some(tree) = &mut self.tree {
            tree.objects = Arc::new(trace.objects.clone());
        }
        if total < known {
            return false;
        }
        for n in known.saturating_sub(1)..total {
            if n >= known {
                if !self.accept(n, trace) {
                    return true;
                }
                if !self.enter(trace, n) {
                    return false;
                }
                if !self.choose(n, &trace.objects) {
                    return true;
                }
            }
            if !self.covered(n, &trace.objects) {
                self.restart();
                return true;
            }
            self.execute(n, trace);
        }
        if !self.accept(total, trace) {
            return true;
        }
        if ended_early(trace.end) {
            if let Some(node) = self.nodes.last_mut() {
                node.try_all();
            }
        }
        true
    }
}

/// Where the thread of `act` begins and how many transitions it has made after `before`; whether it has become another
/// program.
fn origin(act: &Act, trace: &Trace, before: Option<&Node>) -> (ThreadOrigin, bool) {
    let born = trace.born.get(act.tid as usize);
    let Born { start, is_main, exec } = born.copied().unwrap_or(Born { exec: true, ..Born::default() });
    let stood = before.and_then(|b| {
        let i = b.seen.iter().position(|s| s.act.uid == act.uid)?;
        Some(b.origins[i].0.steps + u32::from(i == b.chosen))
    });
    (ThreadOrigin { uid: act.uid, start, is_main, steps: stood.unwrap_or(0) }, exec)
}

/// The entries that a schedule with `late_wake` may hold, `seen` being pending before the last step of its prefix: those
/// of which it is not forgotten what they depend on. What depends on everything (the end of a process that tells its parent,
/// who handles SIGCHLD) would be awake after any step.
fn quiet(sleep: Vec<Sleeper>, seen: &[Seen]) -> Vec<(Tid, u32)> {
    let pid = |t: Tid| seen.iter().find(|s| s.act.tid == t).map(|s| s.act.pid);
    let alone = |t: Tid| seen.iter().all(|s| s.act.tid == t || Some(s.act.pid) != pid(t));
    let calm = |s: &Sleeper| !s.did.wakes_others() && (!s.did.has(Effects::EXITS) || alone(s.entry.0));
    sleep.into_iter().filter(calm).map(|s| s.entry).collect()
}

/// True if threads may have been enabled in the last state all the same.
fn ended_early(end: End) -> bool {
    !matches!(end, End::FINISHED | End::DEADLOCK | End::CYCLE | End::SLEEP_BLOCKED | End::DEPTH | End::MISMATCH)
}

impl<R: Rules> Search for Selective<R> {
    fn next(&mut self) -> Option<Schedule> {
        if self.started {
            while !self.advance()? {
                self.nodes.pop();
            }
        }
        self.started = true;
        let last = self.nodes.last().filter(|_| !self.rules.sleeps_in_blocks());
        Some(Schedule {
            prefix: self.nodes.iter().map(Node::choice).collect(),
            sleep: last.map_or(Vec::new(), |n| quiet(n.sleep_after(&self.rules), &n.seen)),
            late_wake: true,
            policy: Policy::STAY,
            record: true,
            past_cycles: true,
            ..Schedule::default()
        })
    }

    fn done(&mut self, _: u64, trace: &Trace) {
        let known = self.nodes.len().saturating_sub(1) as u64;
        self.transitions += (trace.steps.len() as u64 + trace.unrecorded).saturating_sub(known);
        self.sleep_blocked += u64::from(trace.end == End::SLEEP_BLOCKED);
        self.partial |= is_partial(trace);
        self.partial |= !self.follow(trace);
        // What sleeps in blocks the scheduler does not know of: the execution has gone on for nothing.
        let ran_into = self.nodes.last().is_some_and(|node| node.dropped && node.asleep((node.act().tid, node.value)));
        self.sleep_blocked += u64::from(self.rules.sleeps_in_blocks() && ran_into);
    }

    fn exhaustive(&self) -> bool {
        self.started && self.nodes.is_empty() && !self.is_due() && !self.partial && self.rules.caveat().is_none()
    }

    fn limit(&self) -> Option<Reason> {
        self.rules.caveat().map(|_| Reason::LockReleases)
    }

    fn wants_bounds(&self) -> bool {
        self.rules.persistent()
    }

    fn learn_bounds(&mut self, bounds: Box<dyn Allowed>) {
        self.bounds = bounds;
        self.known.clear();
    }

    fn transitions(&self) -> u64 {
        self.transitions
    }

    fn sleep_blocked(&self) -> u64 {
        self.sleep_blocked
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
