//! Critical sections that a search with composed transitions takes in one order only.
//!
//! A thread that acquires a lock and releases it as its next operation, notifies and other releases aside, passes through
//! the lock. Where that has nothing in common with what another thread does while it holds the same lock, `composed`
//! keeps no order of the two (`dependent_composed`), so none of their operations on that lock is an edge of
//! happens-before (rule T7: an edge counts only if the reduction keeps its order).

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::depend::only_locks;
use vsrun_model::kind::Role;
use vsrun_model::{dependent_after, Effects, ObjId, Tid};

use crate::touched::Touched;
use crate::trace::Trace;

/// Operations of a thread while it holds a lock, as indices of steps, the acquire first.
struct Hold {
    thread: Tid,
    steps: Vec<usize>,
    /// It passes through the lock.
    section: bool,
    /// It gives the lock back with its last step.
    released: bool,
}

/// Pairs of operations on a lock, as indices of steps, the earlier one first, that are in no order.
#[derive(Debug, Default)]
pub struct Apart(BTreeSet<(usize, usize)>);

impl Apart {
    /// Those of an execution of which is known what its transitions did to memory; of another one there are none.
    pub fn of(trace: &Trace) -> Apart {
        let mut apart = Apart::default();
        if trace.touched.len() < trace.steps.len() {
            return apart;
        }
        for (lock, holds) in holds(trace) {
            for section in holds.iter().filter(|hold| hold.section) {
                let others = holds.iter().filter(|hold| hold.thread != section.thread);
                others
                    .filter(|hold| commute(trace, lock, section, hold))
                    .for_each(|hold| apart.add(trace, lock, section, hold));
            }
        }
        apart
    }

    fn add(&mut self, trace: &Trace, lock: ObjId, section: &Hold, hold: &Hold) {
        for &a in section.steps.iter().filter(|&&n| locks(trace, n, lock)) {
            for &b in hold.steps.iter().filter(|&&n| locks(trace, n, lock)) {
                self.0.insert((a.min(b), a.max(b)));
            }
        }
    }

    /// The step at `earlier` is not before the one at `later` by what depends on what.
    pub fn has(&self, earlier: usize, later: usize) -> bool {
        self.0.contains(&(earlier, later))
    }
}

/// Step `n` does nothing but acquire or release `lock`.
fn locks(trace: &Trace, n: usize, lock: ObjId) -> bool {
    let act = &trace.steps[n].act;
    act.op.obj == lock && only_locks(act).is_some()
}

/// Who holds which lock when.
fn holds(trace: &Trace) -> BTreeMap<ObjId, Vec<Hold>> {
    let mut by_thread: BTreeMap<Tid, Vec<usize>> = BTreeMap::new();
    trace.steps.iter().enumerate().for_each(|(n, step)| by_thread.entry(step.act.tid).or_default().push(n));
    let mut all: BTreeMap<ObjId, Vec<Hold>> = BTreeMap::new();
    for (thread, steps) in by_thread {
        for (at, &n) in steps.iter().enumerate() {
            let act = &trace.steps[n].act;
            if only_locks(act) == Some(true) {
                all.entry(act.op.obj).or_default().push(hold(trace, thread, &steps[at..], act.op.obj));
            }
        }
    }
    all
}

/// The hold that begins with the first of `steps`, those of one thread from there on.
fn hold(trace: &Trace, thread: Tid, steps: &[usize], lock: ObjId) -> Hold {
    let act = |n: usize| &trace.steps[n].act;
    let on_lock = |&&n: &&usize| act(n).op.operands().contains(&lock);
    let gives_back = |n: usize| {
        let role = act(n).op.kind.row().role;
        matches!(role, Role::Releases(_) | Role::WaitsOn) && act(n).op.operands().contains(&lock)
    };
    let end = steps.iter().skip(1).position(|&n| gives_back(n)).map(|at| at + 1);
    let steps = &steps[..end.map_or(steps.len(), |end| end + 1)];
    let last = steps[steps.len() - 1];
    let quiet = |&n: &usize| matches!(act(n).op.kind.row().role, Role::Releases(_) | Role::Notifies);
    let passes = only_locks(act(last)) == Some(false) && steps.iter().filter(on_lock).count() == 2;
    let section = end.is_some() && passes && steps[1..].iter().all(quiet);
    Hold { thread, steps: steps.to_vec(), section, released: end.is_some() }
}

/// What the thread of `section` does between acquiring and releasing `lock` has nothing in common with what that of
/// `hold` does while it holds it.
fn commute(trace: &Trace, lock: ObjId, section: &Hold, hold: &Hold) -> bool {
    let both_lock = |a: usize, b: usize| locks(trace, a, lock) && locks(trace, b, lock);
    let independent = |&a: &usize, &b: &usize| {
        let (x, y) = (&trace.steps[a], &trace.steps[b]);
        both_lock(a, b) || !dependent_after(&x.act, Effects::NONE, &y.act, Effects::NONE, false)
    };
    let memory = |hold: &Hold| {
        let mut all = Touched::default();
        // What comes behind the release is not under the lock.
        let under = &hold.steps[..hold.steps.len() - usize::from(hold.released)];
        under.iter().for_each(|&n| all.join(&trace.touched[n]));
        all
    };
    section.steps.iter().all(|a| hold.steps.iter().all(|b| independent(a, b))) && !memory(section).meets(&memory(hold))
}
