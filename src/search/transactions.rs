//! Search by transactions: right and left movers (Flanagan and Qadeer, Transactions for Software Model Checking).
//!
//! A thread that has begun a transaction goes on alone: right movers, then one operation of any kind, the commit, then left movers.
//! Executions are serialized by the commits: right movers are put off until then, left movers follow at once.
//!
//! | operation | mover |
//! |---|---|
//! | acquires a mutex or spin lock of which nobody can tell whether it is held | right |
//! | releases one; notifies under the mutex of all waits | left |
//! | uses memory that all uses so far were made under a common lock of | both |
//! | everything else, and what creates a thread or process | neither |
//!
//! All of this is inferred (Section 6): it is assumed until an execution shows otherwise, and then the search begins again, as
//! [`super::if_sss`] does, whose rules tell which locks and notifies qualify. Plain memory that is no operation is in an order with
//! what others do, or becomes an object (`--race explore`), so it moves both ways. Once anybody does what may tell a transition of any
//! thread from the next (signals, the end of a process beside other threads, cancellation, ..) nothing moves.
//!
//! **Deadlocks.** The paper's reduction finds assertions and loses deadlocks: in one, threads may stand in the middle of right movers,
//! and a search that runs each transaction to its end does not get there. The paper leaves it to the program to assert an order of
//! locks. Here none is lost:
//! * A thread that is blocked before its commit lets the others go on, and what it has done so far is a transition.
//! * Of each acquire in a transaction that has acquired other locks an edge from these is noted, when it is pending. Where edges
//!   form a circle, an acquire along one of them begins a transaction of its own, and the search begins again.
//!
//! Why that is enough: let all executions be taken to their ends (all threads over or blocked). Committed transactions are serialized as
//! in the paper. What is left are threads that are blocked for ever behind right movers only. All these movers are put off to the very end.
//! There each such thread waits for a lock that is held by one outside of these transactions, or by another of them. If the second
//! relation has no circle, they are run in its order, each until it is blocked, which the search does. If it had one, each thread
//! of it would, run alone from the state before all of them, have acquired a lock and have the next pending in one transaction; so the search has seen
//! all the edges of that circle, and no such transaction is left.
//!
//! So every execution that goes to its end is represented by an equivalent one, which is also what `src/race` needs (T7).
//!
//! Transactions sleep as wholes, with what a thread that is blocked in the middle waits for; there are no persistent sets, which would be
//! about first operations only.

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::depend::only_locks;
use vsrun_model::{dependent_composed, Act, Effects, Key, Uid};

use super::allowed::Unknown;
use super::block::Block;
use super::if_sss::InvisibleFirst;
use super::node::{Rules, State};
use super::phase::{Phase, Stage};
use super::sss::Selective;

/// So often the search begins again because of orders of locks; then nothing moves.
const MAX_RESTARTS: u32 = 64;

/// What is known of who moves.
#[derive(Debug)]
pub struct Movers {
    /// Which locks are told apart.
    locks: InvisibleFirst,
    /// Right movers are used.
    rights: bool,
    /// Locks, and those that were acquired after them in one transaction.
    orders: BTreeMap<Key, BTreeSet<Key>>,
    restarts: u32,
}

/// The search by transactions.
pub type Transactions = Selective<Movers>;

impl Transactions {
    /// A search that has not begun.
    pub fn new() -> Transactions {
        Transactions::moving(true)
    }

    /// The same without right movers, to compare with: what Stoller and Cohen (Optimistic Synchronization-Based State-Space Reduction)
    /// have.
    pub fn left_movers() -> Transactions {
        Transactions::moving(false)
    }

    /// What was assumed wrongly is put right where it was assumed, and the search does not begin again ([`super::refine`]).
    pub fn incremental(mut self) -> Transactions {
        self.tree = Some(Default::default());
        self
    }

    fn moving(rights: bool) -> Transactions {
        let movers = Movers { locks: InvisibleFirst::default(), rights, orders: BTreeMap::new(), restarts: 0 };
        Selective::with(movers, Box::new(Unknown))
    }
}

impl Transactions {
    /// Transactions of each thread on the path that the last execution took, as far as it is part of the search tree.
    pub fn transactions_on_path(&self) -> BTreeMap<Uid, usize> {
        let mut all = BTreeMap::new();
        self.beginnings().for_each(|uid| *all.entry(uid).or_default() += 1);
        all
    }
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions::new()
    }
}

impl Movers {
    fn acquires(&self, act: &Act, state: State) -> Option<Key> {
        let key = state.objects.get(act.op.obj as usize).copied()?;
        (only_locks(act) == Some(true) && !self.locks.exposes(&key)).then_some(key)
    }

    fn moves_right(&self, act: &Act, state: State) -> bool {
        self.rights && self.acquires(act, state).is_some()
    }

    /// Takes note of the order in which the thread that moved last acquires locks. True: that closes a circle.
    fn learn_order(&mut self, act: &Act, state: State) -> bool {
        let Some(next) = self.acquires(act, state) else { return false };
        let mut news = false;
        for taken in state.phase.taken.iter().filter_map(|&o| state.objects.get(o as usize).copied()) {
            if taken != next {
                let new = self.orders.entry(taken).or_default().insert(next);
                news |= new && self.reaches(next, taken);
            }
        }
        news
    }

    /// `to` was acquired after `from`, or after one that was, and so on.
    fn reaches(&self, from: Key, to: Key) -> bool {
        let (mut todo, mut known) = (vec![from], BTreeSet::new());
        while let Some(lock) = todo.pop() {
            if lock == to {
                return true;
            }
            if known.insert(lock) {
                todo.extend(self.orders.get(&lock).into_iter().flatten());
            }
        }
        false
    }

    /// The acquire is along a circle of orders of locks.
    fn is_on_circle(&self, act: &Act, state: State) -> bool {
        let Some(next) = self.acquires(act, state) else { return false };
        let taken = state.phase.taken.iter().filter_map(|&o| state.objects.get(o as usize).copied());
        taken.into_iter().any(|taken| taken != next && self.reaches(next, taken))
    }
}

impl Rules for Movers {
    fn accept(&mut self, state: State) -> bool {
        if !self.locks.accept(state) {
            return false;
        }
        let mut news = false;
        for act in state.seen.iter().map(|seen| &seen.act) {
            if state.before.is_some_and(|before| before.uid == act.uid) {
                news |= self.learn_order(act, state);
            }
        }
        self.restarts += u32::from(news);
        if self.restarts >= MAX_RESTARTS {
            self.locks.expose_all();
        }
        !news
    }

    fn invisible(&self, act: &Act, state: State) -> bool {
        if state.before.is_none_or(|before| before.uid != act.uid) || self.locks.is_all() {
            return false;
        }
        match state.phase.stage {
            Stage::Outside => false,
            Stage::Before => !self.is_on_circle(act, state),
            Stage::Behind => self.locks.invisible(act, state),
        }
    }

    fn phase(&self, (act, did): (&Act, Effects), alone: bool, creates: bool, state: State) -> Phase {
        if did.has(Effects::ENDS) || self.locks.is_all() {
            return Phase::default();
        }
        // What lets others do something cannot be put off beyond that.
        let right = (!alone || state.phase.stage == Stage::Before) && !creates && !did.wakes_others();
        if right && self.moves_right(act, state) {
            let before = if alone { state.phase.taken.as_slice() } else { &[] };
            let taken = before.iter().copied().chain([act.op.obj]).collect();
            return Phase { stage: Stage::Before, taken };
        }
        if right && alone && self.locks.protects(act, state) {
            return state.phase.clone();
        }
        Phase { stage: Stage::Behind, taken: Vec::new() }
    }

    fn persistent(&self) -> bool {
        false
    }

    fn sleeps_in_blocks(&self) -> bool {
        true
    }

    fn wakes_block(&self, sleeper: &Block, moving: &Block) -> bool {
        dependent_composed(&sleeper.acts, &moving.acts, false)
    }
}
