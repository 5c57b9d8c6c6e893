//! The lockset machine: is there a lock that is held at all uses of a piece of memory by several threads?
//!
//! Savage et al., Eraser (TOCS 1997); Stoller, TR 536, Sections 8 and 9 (MLD'). What is here is checked in each execution:
//! * MLD'-U: one thread uses it, or several whose uses are ordered by the lives of threads (created later, joined before). Then it counts as
//!   another piece of memory, as objects do that are used in such an order (`vsrun_model::sharing`).
//! * MLD'-R: nobody writes it once it is initialized.
//! * MLD'-L: the candidate set is not empty: the locks that were held at all uses since. For reading, a read-write lock counts in any mode; for
//!   writing, only where it is held for writing. Semaphores, barriers and condition variables are no locks.
//!
//! *initThread*: the thread that has allocated a block may use it without a lock up to its next visible operation, or until it creates a
//! thread (Section 9's alternative of several initialization transitions, of which none is visible, from the allocation on). Globals are
//! allocated when the program is loaded: what is done to them while there is one thread is not looked at. That the time for it ends there,
//! and not at a first use, is what makes a violation show in each order: without it `v = 1` of Section 9 were an initialization.
//!
//! Atomic instructions hold a lock of their own, so that those of several threads violate nothing. A free is no use. Of memory in one word
//! each byte has its own state.
//!
//! Memory of which the program says who may use it is none of this discipline from there on, until it is allocated anew ([`super::owners`]).
//!
//! Locks have to be operations, also those that one thread alone uses (`Objects::unshared` is off): a lock that is not seen would be missing
//! from the candidate set.

use std::collections::{BTreeMap, HashMap};

use vsrun_model::{Kind, ObjId, Tid, NONE};

use super::access::{Access, Note};
use super::conflict::{is_atomic, of_pending, Conflict, Flaw};
use super::words::Touch;
use crate::held::Held;
use crate::touched::{bytes_of, WORD};
use crate::trace::Trace;

/// What atomic instructions hold.
const BUS: ObjId = NONE;

/// What orders uses by the lives of threads: of each thread up to which of its segments all is before. A segment ends with a step and with
/// the creation of a thread.
#[derive(Default)]
struct Lives {
    by: Vec<Life>,
}

#[derive(Clone, Default)]
struct Life {
    segment: u32,
    before: Vec<u32>,
}

impl Lives {
    fn of(&mut self, thread: Tid) -> &mut Life {
        let at = thread as usize;
        if self.by.len() <= at {
            self.by.resize(at + 1, Life { segment: 1, before: Vec::new() });
        }
        &mut self.by[at]
    }

    /// All that `thread` has done is before what `later` does from now on.
    fn join(&mut self, thread: Tid, later: Tid) {
        let Life { segment, mut before } = self.of(thread).clone();
        let at = thread as usize;
        if before.len() <= at {
            before.resize(at + 1, 0);
        }
        before[at] = segment;
        let known = &mut self.of(later).before;
        if known.len() < before.len() {
            known.resize(before.len(), 0);
        }
        known.iter_mut().zip(before).for_each(|(known, new)| *known = (*known).max(new));
    }

    fn is_before(&self, touch: &Touch, later: Tid) -> bool {
        let before = || self.by.get(later as usize)?.before.get(touch.thread as usize).copied();
        touch.thread == later || before().unwrap_or(0) >= touch.segment
    }
}

/// Memory that was allocated: by whom, and in which segment of that thread.
#[derive(Default)]
struct Blocks {
    /// By space and address; with the end. They do not overlap.
    all: BTreeMap<(u32, u64), (u64, (Tid, u32))>,
}

impl Blocks {
    fn insert(&mut self, space: u32, start: u64, end: u64, made: (Tid, u32)) {
        self.remove(space, start, end);
        if start < end {
            self.all.insert((space, start), (end, made));
        }
    }

    fn remove(&mut self, space: u32, start: u64, end: u64) {
        let before = self.all.range((space, 0)..(space, start)).next_back().map(|(key, block)| (*key, *block));
        if let Some((key, (old, by))) = before.filter(|(_, (old, _))| *old > start) {
            self.all.insert(key, (start, by));
            if old > end {
                self.all.insert((space, end), (old, by));
            }
        }
        let inside: Vec<_> = self.all.range((space, start)..(space, end)).map(|(key, block)| (*key, *block)).collect();
        for (key, (old, by)) in inside {
            self.all.remove(&key);
            if old > end {
                self.all.insert((space, end), (old, by));
            }
        }
    }

    fn made(&self, space: u32, address: u64) -> Option<(Tid, u32)> {
        let (_, (end, made)) = self.all.range((space, 0)..=(space, address)).next_back()?;
        (address < *end).then_some(*made)
    }
}

/// What is known of some bytes of a word.
#[derive(Clone, Default)]
struct State {
    /// A bit for each of them.
    bytes: u8,
    /// Who has allocated them, and in which of its segments.
    made: Option<(Tid, u32)>,
    /// The last use of each kind by each thread, as indices of [`Machine::touches`].
    uses: Vec<u32>,
    /// It was written since it was initialized.
    written: bool,
    /// Locks that were held at all uses since; `None`: all.
    candidates: Option<Vec<ObjId>>,
    /// It has been reported.
    told: bool,
}

/// The machine, as far as an execution has come.
#[derive(Default)]
struct Machine {
    lives: Lives,
    held: Held,
    /// Of each thread its last step.
    steps: HashMap<Tid, u32>,
    made: u32,
    touches: Vec<Touch>,
    /// What each of them was made under.
    under: Vec<Vec<ObjId>>,
    blocks: Blocks,
    /// Memory of which it is said who may use it, by whom.
    stated: Blocks,
    /// By space and number of the word.
    words: HashMap<(u32, u64), Vec<State>>,
    found: Vec<Conflict>,
}

/// The uses of memory that violate the discipline, in the order in which the violations come about: of each piece of memory the first. The
/// first of the two uses is the last one by another thread, of those under no lock in common if there are such.
pub fn violations(trace: &Trace, notes: impl IntoIterator<Item = Note>) -> Vec<Conflict> {
    let mut machine = Machine::default();
    for note in notes {
        match note {
            Note::Begins { thread, creator, .. } => {
                machine.lives.join(creator, thread);
                machine.lives.of(creator).segment += 1;
            }
            Note::Step { index } => machine.step(trace, index),
            Note::Ends { .. } => {}
            Note::Anew { thread, space, address, size } => machine.anew(thread, space, address, size),
            Note::Claims { space, address, size, thread, .. } => {
                let end = address.saturating_add(size);
                machine.stated.insert(space, address, end, (thread, 0));
                machine.forget(space, address, end);
            }
            Note::Touches { thread, access } => machine.access(thread, access),
            Note::Runs { thread, access, times, stride } => {
                access.run(times, stride).for_each(|access| machine.access(thread, access));
            }
        }
    }
    machine.found
}

impl Machine {
    fn access(&mut self, thread: Tid, access: Access) {
        let (step, made) = (self.steps.get(&thread).copied(), self.made);
        self.touch(Touch { thread, step, access, made, segment: 0, number: 0 });
    }

    fn step(&mut self, trace: &Trace, index: u32) {
        let Some(step) = trace.steps.get(index as usize) else { return };
        let (act, thread) = (&step.act, step.act.tid);
        self.made = index + 1;
        self.steps.insert(thread, index);
        self.lives.of(thread).segment += 1;
        self.held.step(trace, index as usize);
        if act.op.kind == Kind::JOIN && act.state == 1 {
            self.lives.join(act.op.obj, thread);
        }
        for second in [false, true] {
            if let Some(touch) = of_pending(act, self.made, Some(index), trace, second) {
                self.touch(touch);
            }
        }
    }

    fn anew(&mut self, thread: Tid, space: u32, address: u64, size: u64) {
        let (made, end) = ((thread, self.lives.of(thread).segment), address.saturating_add(size));
        self.blocks.insert(space, address, end, made);
        self.stated.remove(space, address, end);
        self.forget(space, address, end);
    }

    /// Nothing has been done to these bytes.
    fn forget(&mut self, space: u32, address: u64, end: u64) {
        let (first, last) = (address / WORD, end.div_ceil(WORD));
        let forget = |word: u64, states: &mut Vec<State>| {
            let bytes = bytes_of(word, address, end);
            states.iter_mut().for_each(|state| state.bytes &= !bytes);
            states.retain(|state| state.bytes != 0);
        };
        // A block may be much larger than what is used of it: the stack of a thread.
        if last - first > self.words.len() as u64 {
            let within = |key: &(u32, u64)| key.0 == space && (first..last).contains(&key.1);
            self.words.iter_mut().filter(|(key, _)| within(key)).for_each(|(key, states)| forget(key.1, states));
        } else {
            for word in first..last {
                self.words.get_mut(&(space, word)).into_iter().for_each(|states| forget(word, states));
            }
        }
    }

    fn touch(&mut self, touch: Touch) {
        if touch.access.frees() {
            return;
        }
        let access = touch.access;
        let number = self.touches.len() as u32;
        self.touches.push(Touch { segment: self.lives.of(touch.thread).segment, number, ..touch });
        let held = self.held.of(touch.thread).into_iter();
        let counts = held.filter(|hold| !hold.shared || !access.write).map(|hold| hold.lock);
        self.under.push(counts.chain(is_atomic(&access).then_some(BUS)).collect());
        let end = access.address.saturating_add(access.size);
        for word in access.address / WORD..end.div_ceil(WORD) {
            let bytes = bytes_of(word, access.address, end) & !self.stated_bytes(access.space, word);
            if bytes == 0 {
                continue;
            }
            let mut states = self.words.remove(&(access.space, word)).unwrap_or_default();
            let lowest = word * WORD + u64::from(bytes.trailing_zeros());
            let made = self.blocks.made(access.space, lowest);
            self.touch_word(&mut states, (bytes, made), number);
            self.words.insert((access.space, word), states);
        }
    }

    /// The bytes of a word of which it is said who may use them.
    fn stated_bytes(&self, space: u32, word: u64) -> u8 {
        if self.stated.all.is_empty() {
            return 0;
        }
        let stated = |n: &u64| self.stated.made(space, word * WORD + n).is_some();
        (0..WORD).filter(stated).map(|n| 1 << n).sum()
    }

    /// `made`: who has allocated what of it is used for the first time.
    fn touch_word(&mut self, states: &mut Vec<State>, (bytes, made): (u8, Option<(Tid, u32)>), number: u32) {
        let mut left = bytes;
        for n in 0..states.len() {
            let common = states[n].bytes & bytes;
            if common == 0 {
                continue;
            }
            left &= !common;
            if common != states[n].bytes {
                let rest = State { bytes: states[n].bytes & !common, ..states[n].clone() };
                states.push(rest);
            }
            states[n].bytes = common;
            self.apply(&mut states[n], number);
        }
        if left != 0 {
            let mut new = State { bytes: left, made, ..State::default() };
            self.apply(&mut new, number);
            states.push(new);
        }
    }

    /// The bytes of `state` are used.
    fn apply(&mut self, state: &mut State, number: u32) {
        let touch = self.touches[number as usize];
        let of = |&n: &u32| &self.touches[n as usize];
        if state.uses.iter().all(|n| self.lives.is_before(of(n), touch.thread))
            && !state.uses.iter().all(|n| of(n).thread == touch.thread)
        {
            *state = State { bytes: state.bytes, ..State::default() };
        }
        let initializes = state.made == Some((touch.thread, touch.segment));
        if !initializes {
            let under = &self.under[number as usize];
            match &mut state.candidates {
                Some(candidates) => candidates.retain(|lock| under.contains(lock)),
                all => *all = Some(under.clone()),
            }
            state.written |= touch.access.write;
        }
        let other = (!state.told && state.written && state.candidates.as_ref().is_some_and(Vec::is_empty))
            .then(|| self.other(state, number))
            .flatten();
        if let Some(other) = other {
            state.told = true;
            self.found.push(Conflict::new(Flaw::Undisciplined, self.touches[other as usize], touch));
        }
        let of = |&n: &u32| &self.touches[n as usize];
        state.uses.retain(|n| of(n).thread != touch.thread || of(n).access.write != touch.access.write);
        state.uses.push(number);
    }

    /// The use by another thread that is named beside the one that is made now.
    fn other(&self, state: &State, number: u32) -> Option<u32> {
        let (touch, under) = (&self.touches[number as usize], &self.under[number as usize]);
        let worth = |n: &&u32| {
            let other = &self.touches[**n as usize];
            let apart = self.under[**n as usize].iter().all(|lock| !under.contains(lock));
            (apart && (other.access.write || touch.access.write), apart, other.number)
        };
        state.uses.iter().filter(|&&n| self.touches[n as usize].thread != touch.thread).max_by_key(worth).copied()
    }
}

#[cfg(test)]
#[path = "lockset_tests.rs"]
mod tests;
