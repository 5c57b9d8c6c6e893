//! Which steps of an execution come directly before steps of other threads: the arrows in a picture of it.
//!
//! Happens-before as [`Order`](super::Order) has it, for people: without what is only ordered because one of the two concerns everything
//! (a deadline that passed, a yield, a signal that nobody has noticed yet) or something that has no name, and without what other arrows say
//! already.

use vsrun_model::arena::{Seen, Step};
use vsrun_model::depend::{needs, WOKEN};
use vsrun_model::footprint::{Cell, Footprint, How};
use vsrun_model::kind::{Channels, Role};
use vsrun_model::{Act, Effects, Kind, ObjId, ObjKind, Tid};

use crate::search::clock::{add, join, Clock};
use crate::search::index::{Index, Sought};
use crate::trace::{signal_taken, Trace};

/// Number of SIGCHLD.
const CHILD_ENDED: u16 = 17;

/// Why a step comes before one of another thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tie {
    /// It has created the other's thread, or process.
    Creates,
    /// It has woken it.
    Wakes,
    /// It has sent the signal that the other takes.
    Signals(u32),
    /// It is the end of a thread or process for which the other waits.
    Ends,
    /// A lock that goes from one to the other.
    Lock(ObjId),
    /// What one has written the other has read; also connections.
    Message(ObjId),
    /// They use the same memory.
    Memory(ObjId),
    /// They use the same object.
    Object(ObjId),
}

/// An arrow, by indices of steps of the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrow {
    /// The later step.
    pub to: usize,
    /// The earlier one, of another thread.
    pub from: usize,
    /// Why.
    pub tie: Tie,
}

/// What comes directly before what, ascending by the later step. Who was created and woken by whom is known where what was pending is recorded
/// in all states of the trace.
pub fn arrows(trace: &Trace) -> Vec<Arrow> {
    let mut all = Arrows::default();
    let born = births(trace);
    for n in 0..trace.steps.len() {
        all.step(trace, &born, n);
    }
    all.found.sort_unstable();
    all.found
}

#[derive(Default)]
struct Arrows {
    found: Vec<Arrow>,
    /// What happened before each step, by step.
    clocks: Vec<Clock>,
    /// The last step of each thread.
    last: Vec<Option<usize>>,
    index: Index,
}

impl Arrows {
    fn step(&mut self, trace: &Trace, born: &[Option<usize>], n: usize) {
        let act = trace.steps[n].act;
        let thread = act.tid as usize;
        if self.last.len() <= thread {
            self.last.resize(thread + 1, None);
        }
        let mut clock = Clock::new();
        match self.last[thread].replace(n) {
            Some(before) => self.follow(&mut clock, trace, before),
            None => {
                let created = born.get(thread).copied().flatten();
                created.into_iter().for_each(|from| self.draw(&mut clock, trace, (from, n), Tie::Creates));
            }
        }
        if let Some(from) = woken_by(trace, n) {
            self.draw(&mut clock, trace, (from, n), Tie::Wakes);
        }
        if let Some((from, signal)) = sent_by(trace, n) {
            self.draw(&mut clock, trace, (from, n), Tie::Signals(signal));
        }
        let mut sought = Sought::default();
        sought.add(&act, Effects::NONE);
        // The last come first, so what is not in the clock yet is before this step by no other.
        let found = std::mem::take(&mut self.index);
        let mut candidates = found.candidates(n, &sought);
        while let Some(from) = candidates.next(&clock) {
            if let Some(tie) = tie(&trace.steps[from], &act) {
                self.draw(&mut clock, trace, (from, n), tie);
            }
        }
        self.index = found;
        self.index.add(n, &act, trace.steps[n].did);
        self.clocks.push(clock);
    }

    /// All that happened before the step `from` is in `clock`, and that step.
    fn follow(&self, clock: &mut Clock, trace: &Trace, from: usize) {
        join(clock, &self.clocks[from]);
        add(clock, trace.steps[from].act.tid, from);
    }

    fn draw(&mut self, clock: &mut Clock, trace: &Trace, (from, to): (usize, usize), tie: Tie) {
        if trace.steps[from].act.tid != trace.steps[to].act.tid {
            self.found.push(Arrow { to, from, tie });
        }
        self.follow(clock, trace, from);
    }
}

/// Why `later`, of another thread, has to come after `earlier`, if there is a reason that people look for.
fn tie(earlier: &Step, later: &Act) -> Option<Tie> {
    let (before, after) = (Footprint::of(&earlier.act, earlier.did), Footprint::of(later, Effects::NONE));
    let meets = |(cell, how): &&(Cell, How)| {
        after.cells().iter().any(|(other, also)| other == cell && !how.commutes(also, true))
    };
    let told = |(cell, _): &(Cell, How)| match cell {
        Cell::Object(id) => Some(of_object(*id, &earlier.act, later)),
        Cell::Channels => data(&earlier.act, later).then_some(Tie::Message(earlier.act.op.obj)),
        Cell::Thread(_) | Cell::Children(_) => awaits(later.op.kind).then_some(Tie::Ends),
        _ => None,
    };
    let met = before.cells().iter().filter(meets).filter_map(told).min();
    met.or_else(|| needs(&earlier.act, later).then_some(Tie::Object(later.op.obj)))
}

/// One puts something into a channel, and the other takes it, or looks for it.
fn data(earlier: &Act, later: &Act) -> bool {
    let (from, to) = (earlier.op.kind.row().channels, later.op.kind.row().channels);
    let gives = matches!(from, Channels::Writes | Channels::Sends | Channels::SendsTo | Channels::Connects);
    gives && (to.watches() || matches!(to, Channels::Reads | Channels::Receives | Channels::Accepts))
}

/// It waits for the end of a thread or process.
fn awaits(kind: Kind) -> bool {
    matches!(kind, Kind::JOIN | Kind::WAIT | Kind::WAIT_SLEEP)
}

/// The same where both use the object `id`.
fn of_object(id: ObjId, earlier: &Act, later: &Act) -> Tie {
    let named = [earlier, later].into_iter().find(|act| act.op.obj == id);
    let (from, to) = (earlier.op.kind.row(), later.op.kind.row());
    let locks = |role: Role| matches!(role, Role::Acquires(_) | Role::Releases(_) | Role::WaitsOn | Role::Reacquires);
    match named.map(|act| act.obj_kind) {
        Some(ObjKind::MEMORY) => Tie::Memory(id),
        _ if data(earlier, later) => Tie::Message(id),
        Some(ObjKind::MUTEX | ObjKind::SPIN | ObjKind::RWLOCK | ObjKind::STREAM) => Tie::Lock(id),
        Some(ObjKind::RECORDS | ObjKind::FLOCK) => Tie::Lock(id),
        // The mutex of a condition variable is the second operand.
        None if locks(from.role) && locks(to.role) => Tie::Lock(id),
        _ => Tie::Object(id),
    }
}

/// By thread, the step in which it came into being.
fn births(trace: &Trace) -> Vec<Option<usize>> {
    let mut born: Vec<Option<usize>> = Vec::new();
    let mut known: Vec<bool> = Vec::new();
    for (n, state) in trace.seen.iter().chain([&trace.last]).enumerate() {
        for seen in state {
            let thread = seen.act.tid as usize;
            if known.len() <= thread {
                known.resize(thread + 1, false);
                born.resize(thread + 1, None);
            }
            if !std::mem::replace(&mut known[thread], true) {
                // Those who are there at first were created before the first step.
                born[thread] = n.checked_sub(1).filter(|&from| !trace.seen[from].is_empty());
            }
        }
    }
    born
}

/// The step that has given the one at `n` its wake-up, where it waited for one.
fn woken_by(trace: &Trace, n: usize) -> Option<usize> {
    let step = &trace.steps[n];
    if step.act.fate & WOKEN == 0 {
        return None;
    }
    let pending = |state: &[Seen]| state.iter().find(|seen| seen.act.tid == step.act.tid).map(|seen| seen.act.fate);
    // It was pending, and woken, in all states between.
    let asleep = |&m: &usize| pending(&trace.seen[m]).is_some_and(|fate| fate & WOKEN == 0);
    let from = (0..n).rev().take_while(|&m| pending(&trace.seen[m]).is_some()).find(asleep)?;
    Some(from)
}

/// The step that has sent the signal which the step at `n` takes, and its number; `None` also where the sender is no step (a timer).
fn sent_by(trace: &Trace, n: usize) -> Option<(usize, u32)> {
    let step = &trace.steps[n];
    let (number, tid) = (signal_taken(step), step.act.tid);
    if number == 0 {
        return None;
    }
    let sends = |earlier: &Step| match earlier.act.op.kind {
        Kind::KILL => earlier.act.op.arg == i64::from(number) && earlier.act.op.obj == step.act.pid,
        _ => number == CHILD_ENDED && earlier.did.has(Effects::ENDS) && earlier.act.parent == step.act.pid,
    };
    // Its thread takes it at once, so an earlier one of the same number has been taken before.
    let from = trace.steps[..n].iter().rposition(|earlier| earlier.act.tid != tid as Tid && sends(earlier))?;
    Some((from, number.into()))
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
