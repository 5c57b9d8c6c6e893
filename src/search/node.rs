//! A state of a selective search's path, as its rules see it, and what the search knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use vsrun_model::arena::{Choice, Seen};
use vsrun_model::kind::{Lock, Role};
use vsrun_model::{dependent_after, Act, Effects, Key, Tid};

use super::allowed::ThreadOrigin;
use super::block::Block;
use super::phase::{Phase, Stage};
use crate::touched::Touched;

/// A state as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// What is pending.
    pub seen: &'a [Seen],
    /// What object numbers stand for.
    pub objects: &'a [Key],
    /// Mutexes that threads hold, as (thread, object); those acquired during initialization or by a try are not known.
    pub held: &'a BTreeSet<(Tid, u32)>,
    /// What led to the state.
    pub before: Option<&'a Act>,
    /// How far the thread of that has come in a transaction.
    pub phase: &'a Phase,
}

/// What one search does otherwise than another.
pub trait Rules: fmt::Debug + Send {
    /// Looks at the pending operations of a state. False: they show that states already explored were treated wrongly,
    /// and the search begins again, with what the rules know now.
    fn accept(&mut self, _state: State) -> bool {
        true
    }

    /// True if the enabled operation is invisible: its thread moves first and alone.
    fn invisible(&self, _act: &Act, _state: State) -> bool {
        false
    }

    /// Whether a transition that ends its thread or leads to a yield is visible whatever its operation: others may see
    /// that it was performed. It is known only afterwards.
    fn shows_its_end(&self) -> bool {
        true
    }

    /// Whether persistent sets are computed; otherwise all enabled transitions are taken.
    fn persistent(&self) -> bool {
        true
    }

    /// Whether what sleeps as `sleeper` is woken by `moving`, each with what its transition did beyond its operation.
    fn wakes(&self, sleeper: &(Act, Effects), moving: &(Act, Effects)) -> bool {
        dependent_after(&sleeper.0, sleeper.1, &moving.0, moving.1, true)
    }

    /// The same for what sleeps as a block, where it does: `moving` are the transitions that were made from the state in
    /// which `sleeper` fell asleep, or slept, up to the next visible one.
    fn wakes_block(&self, sleeper: &Block, moving: &Block) -> bool {
        sleeper.acts.iter().any(|s| moving.acts.iter().any(|m| self.wakes(s, m)))
    }

    /// Whether what sleeps is a transition together with the invisible ones after it, as they were executed. The
    /// scheduler step, which only knows what is pending, is then left out of it.
    fn sleeps_in_blocks(&self) -> bool {
        false
    }

    /// How far the thread of `made` has come in a transaction, in which it goes on (`alone`) or which it begins, with the
    /// transition that was made in `state`; `creates`: a thread or process began in it.
    fn phase(&self, made: (&Act, Effects), alone: bool, creates: bool, state: State) -> Phase {
        let _ = (made, alone, creates, state);
        Phase::default()
    }

    /// What the search may miss though it runs to its end; `None`: nothing.
    fn caveat(&self) -> Option<&'static str> {
        None
    }
}

/// All operations are visible, and all reduction is on.
#[derive(Debug, Default)]
pub struct AllVisible;

impl Rules for AllVisible {}

/// What sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    pub(super) entry: (Tid, u32),
    /// What it did beyond its operation when it was explored: the same wherever it sleeps.
    pub(super) did: Effects,
}

pub(super) static NO_PHASE: Phase = Phase { stage: Stage::Outside, taken: Vec::new() };

/// A state of the present path and the step that is taken from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) seen: Vec<Seen>,
    /// Where each thread begins and how many transitions it has made; parallel to `seen`.
    pub(super) origins: Vec<(ThreadOrigin, bool)>,
    /// See [`State::held`].
    pub(super) held: BTreeSet<(Tid, u32)>,
    /// Asleep on arrival, and what has been explored from here and sleeps while the rest is.
    pub(super) sleep: Vec<Sleeper>,
    /// What has been explored from here.
    pub(super) done: Vec<(Tid, u32)>,
    /// Where blocks sleep, those in `sleep`.
    pub(super) blocks: BTreeMap<(Tid, u32), Arc<Block>>,
    /// The block that the step begins.
    pub(super) block: Block,
    /// How far the thread of the step has come in a transaction.
    pub(super) phase: Phase,
    /// What the step did to memory, where that is known.
    pub(super) touched: Option<Touched>,
    /// The threads to be tried, a mask over `seen`.
    pub(super) todo: Vec<bool>,
    /// Which of `seen` moves, in which alternative.
    pub(super) chosen: usize,
    pub(super) value: u32,
    /// What the step did beyond its operation, once it has been executed.
    pub(super) did: Effects,
    /// The thread moves alone because its operation is invisible.
    pub(super) alone: bool,
    /// A thread or process began in the step.
    pub(super) creates: bool,
    /// The step led a thread to a yield, or to a poll that gives way like one.
    pub(super) yields: bool,
    /// What was executed from here is not part of the tree.
    pub(super) dropped: bool,
    /// Where the tree is kept: the number of the state, and the step.
    pub(super) place: usize,
    #[allow(missing_docs)]
    pub(super) step: Option<usize>,
    /// What object numbers stood for when the step was taken.
    pub(super) objects: Arc<Vec<Key>>,
}

impl Node {
    pub(super) fn act(&self) -> &Act {
        &self.seen[self.chosen].act
    }

    pub(super) fn choice(&self) -> Choice {
        Choice::new(self.act().uid, self.value, self.act().op.kind)
    }

    /// The state; `before`: the one that the step before leads from.
    pub(super) fn state<'a>(&'a self, objects: &'a [Key], before: Option<&'a Node>) -> State<'a> {
        let phase = before.map_or(&NO_PHASE, |b| &b.phase);
        State { seen: &self.seen, objects, held: &self.held, before: before.map(Node::act), phase }
    }

    /// The mutexes that are held after the step.
    pub(super) fn held_after(&self) -> BTreeSet<(Tid, u32)> {
        let Act { tid, op, .. } = *self.act();
        let mut held = self.held.clone();
        match op.kind.row().role {
            Role::Acquires(Lock::Mutex | Lock::Again) if !op.looks() => held.insert((tid, op.obj)),
            Role::Reacquires if !self.act().gives_up_waiting() => held.insert((tid, op.obj2)),
            Role::Releases(Lock::Mutex) => held.remove(&(tid, op.obj)),
            Role::WaitsOn => held.remove(&(tid, op.obj2)),
            _ => false,
        };
        held
    }

    pub(super) fn try_all(&mut self) {
        self.todo.fill(true);
    }

    /// What is still asleep after the step. A step that leads to a yield wakes everything.
    pub(super) fn sleep_after(&self, rules: &impl Rules) -> Vec<Sleeper> {
        if self.yields {
            return Vec::new();
        }
        let moving = (*self.act(), self.did);
        let stays =
            |s: &&Sleeper| self.seen.iter().any(|p| p.act.tid == s.entry.0 && !rules.wakes(&(p.act, s.did), &moving));
        self.sleep.iter().filter(stays).copied().collect()
    }

    /// A block that sleeps, with its first operation as it is recorded here.
    pub(super) fn block_here(&self, entry: (Tid, u32)) -> Option<Block> {
        let block = self.blocks.get(&entry)?;
        let pending = self.seen.iter().find(|p| p.act.tid == entry.0)?;
        let mut block = (**block).clone();
        block.acts.first_mut()?.0 = pending.act;
        Some(block)
    }

    pub(super) fn awake(&self, i: usize) -> Option<u32> {
        let tid = self.seen[i].act.tid;
        (0..self.seen[i].choices).find(|&v| !self.asleep((tid, v)) && !self.done.contains(&(tid, v)))
    }

    pub(super) fn asleep(&self, entry: (Tid, u32)) -> bool {
        self.sleep.iter().any(|s| s.entry == entry)
    }

    /// Puts the step that has been explored to sleep and turns to the next one. False: there is none.
    pub(super) fn advance(&mut self) -> bool {
        if !std::mem::take(&mut self.dropped) {
            let explored = (self.act().tid, self.value);
            self.done.push(explored);
            if !self.yields {
                self.sleep.push(Sleeper { entry: explored, did: self.did });
            }
            let block = std::mem::take(&mut self.block);
            if !block.acts.is_empty() {
                self.blocks.insert(explored, Arc::new(block));
            }
        }
        let next = (0..self.seen.len()).filter(|&i| self.todo[i]).find_map(|i| self.awake(i).map(|v| (i, v)));
        let Some((chosen, value)) = next else { return false };
        self.chosen = chosen;
        self.value = value;
        self.did = Effects::NONE;
        self.yields = false;
        true
    }
}
