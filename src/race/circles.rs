//! Circles in the order in which threads acquire locks: what may become a deadlock in another execution.
//!
//! A search by transactions loses deadlocks if it does not look at that (Flanagan and Qadeer, Section 7: a violation of the partial order can
//! be encoded as an assertion); one that ends early may not have come to them. Looked for is what Havelund's GoodLock does (Using Runtime
//! Analysis to Guide Model Checking of Java Programs, SPIN 2000), with any number of locks: different threads acquire each lock of a circle
//! while they hold the one before, and hold no lock in common beside these. Something else may keep them apart (a semaphore, a join): it is no
//! bug, and said as what it is.

use std::collections::BTreeSet;

use vsrun_model::depend::CANCELLED;
use vsrun_model::kind::{Lock, Role};
use vsrun_model::{Act, Key, Kind, ObjId, Uid};

use crate::held::{Held, Hold};
use crate::trace::Trace;

/// Most pairs of locks that are kept.
const MAX_EDGES: usize = 1 << 12;
/// Most locks of a circle.
const MAX_LOCKS: usize = 8;

/// A thread acquires a lock while it holds another one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// The lock that it holds.
    pub from: Key,
    /// The one that it acquires.
    pub to: Key,
    /// Who.
    pub thread: Uid,
    /// What else it holds.
    gates: BTreeSet<Key>,
}

/// The order in which locks are acquired, as far as executions have shown.
#[derive(Debug, Default)]
pub struct LockOrder {
    edges: BTreeSet<Edge>,
    /// The steps of the execution that was learnt from last, as far as they matter.
    last: Vec<Seen>,
}

/// Who did what with which objects, as it found them.
type Seen = (Uid, Kind, ObjId, ObjId, i64);

impl LockOrder {
    /// Takes note of an execution: the circles that are new, each beginning with its least edge.
    pub fn learn(&mut self, trace: &Trace) -> Vec<Vec<Edge>> {
        let mut circles = BTreeSet::new();
        let mut held = Held::default();
        let seen = |act: &Act| (act.uid, act.op.kind, act.op.obj, act.op.obj2, act.state);
        let steps = || trace.steps.iter().map(|step| seen(&step.act));
        let known = self.last.iter().zip(steps()).take_while(|(old, new)| *old == new).count();
        self.last.truncate(known);
        self.last.extend(steps().skip(known));
        for (index, step) in trace.steps.iter().enumerate() {
            if let Some(to) = acquired(&step.act).filter(|_| index >= known) {
                let before: Vec<Hold> = held.of(step.act.tid);
                let again = before.iter().any(|hold| hold.lock == to);
                for hold in before.iter().filter(|hold| !again && !hold.shared) {
                    let key = |lock: ObjId| trace.objects.get(lock as usize).copied();
                    let others = before.iter().filter(|other| other.lock != hold.lock);
                    let gates = others.filter_map(|other| key(other.lock)).collect();
                    if let (Some(from), Some(to)) = (key(hold.lock), key(to)) {
                        let edge = Edge { from, to, thread: step.act.uid, gates };
                        if self.edges.len() < MAX_EDGES && self.edges.insert(edge.clone()) {
                            self.close(&mut vec![edge], &mut circles);
                        }
                    }
                }
            }
            held.step(trace, index);
        }
        circles.into_iter().collect()
    }

    /// Adds the circles that go on from `path`.
    fn close(&self, path: &mut Vec<Edge>, circles: &mut BTreeSet<Vec<Edge>>) {
        let (first, last) = (path[0].from, path[path.len() - 1].to);
        if first == last {
            let mut circle = path.clone();
            let least = (0..circle.len()).min_by_key(|&n| &circle[n]).unwrap_or(0);
            circle.rotate_left(least);
            circles.insert(circle);
            return;
        }
        if path.len() == MAX_LOCKS {
            return;
        }
        let apart = |edge: &&Edge| {
            let met = |other: &Edge| {
                other.thread == edge.thread || other.from == edge.from || !other.gates.is_disjoint(&edge.gates)
            };
            edge.from == last && !path.iter().any(met)
        };
        let next: Vec<Edge> = self.edges.iter().filter(apart).cloned().collect();
        for edge in next {
            path.push(edge);
            self.close(path, circles);
            path.pop();
        }
    }
}

/// The lock that a step acquires, waiting for it if need be, for its thread alone.
fn acquired(act: &Act) -> Option<ObjId> {
    match act.op.kind.row().role {
        Role::Acquires(Lock::Mutex | Lock::Again | Lock::Spin | Lock::Write | Lock::Announced) if !act.op.looks() => {
            Some(act.op.obj)
        }
        Role::Reacquires if act.fate & CANCELLED == 0 => Some(act.op.obj2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use vsrun_model::arena::Step;
    use vsrun_model::{ObjKind, Op, Tid};

    use super::*;

    /// The circles of an execution in which threads acquire locks in this order, and give all back behind the last one.
    fn circles(all: &[(Tid, &[ObjId])]) -> Vec<Vec<(ObjId, ObjId)>> {
        let mut trace = Trace { flags: vec![0; 9], ..Trace::default() };
        trace.objects = (0..9).map(|n| Key::new(0, ObjKind::MUTEX, n)).collect();
        let mut push = |tid, kind, lock, state| {
            let uid = Uid::MAIN.child(tid);
            let act = Act { tid, uid, op: Op::on(kind, lock), obj_kind: ObjKind::MUTEX, state, ..Act::NOTHING };
            trace.steps.push(Step { act, ..Step::default() });
        };
        for &(tid, locks) in all {
            locks.iter().for_each(|&lock| push(tid, Kind::MUTEX_LOCK, lock, 0));
            locks.iter().rev().for_each(|&lock| push(tid, Kind::MUTEX_UNLOCK, lock, i64::from(tid) + 1));
        }
        let mut order = LockOrder::default();
        let found = order.learn(&trace);
        assert_eq!(order.learn(&trace), Vec::<Vec<Edge>>::new(), "they are told once");
        // One that begins as the one before.
        let mut two = LockOrder::default();
        let short = Trace { steps: trace.steps[..trace.steps.len() / 2].to_vec(), ..trace.clone() };
        let before = two.learn(&short);
        assert_eq!(before.into_iter().chain(two.learn(&trace)).collect::<Vec<_>>(), found);
        let edge = |edge: &Edge| (edge.from.addr as ObjId, edge.to.addr as ObjId);
        found.iter().map(|circle| circle.iter().map(edge).collect()).collect()
    }

    #[test]
    fn circles_of_different_threads() {
        assert_eq!(circles(&[(1, &[0, 1]), (2, &[1, 0])]), [[(0, 1), (1, 0)]]);
        let three = circles(&[(1, &[0, 1]), (2, &[1, 2]), (3, &[2, 0])]);
        assert_eq!(three, [[(0, 1), (1, 2), (2, 0)]]);
        // One order, and both by one thread.
        assert!(circles(&[(1, &[0, 1]), (2, &[0, 1]), (3, &[1, 2])]).is_empty());
        assert!(circles(&[(1, &[0, 1]), (1, &[1, 0])]).is_empty());
        assert!(circles(&[(1, &[0, 1]), (2, &[1, 2]), (1, &[2, 0])]).is_empty());
    }

    #[test]
    fn a_lock_around_them_keeps_them_apart() {
        assert!(circles(&[(1, &[5, 0, 1]), (2, &[5, 1, 0])]).is_empty());
        assert_eq!(circles(&[(1, &[5, 0, 1]), (2, &[6, 1, 0])]), [[(0, 1), (1, 0)]]);
    }
}
