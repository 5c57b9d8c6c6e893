//! Which locks threads hold, read off the steps of an execution: mutexes, spin locks, locks of streams, read-write locks by their mode.
//!
//! A step says what it found (`Act::state`), so whether it got the lock is known without the model's state. Locks that are no place to
//! switch (unshared ones, those declared atomic) make no steps: of these nothing is known here.

use vsrun_model::depend::{RwState, CANCELLED, EXPIRED, WOKEN};
use vsrun_model::kind::{Lock, Role};
use vsrun_model::object::{MUTEX_RECURSIVE, MUTEX_TYPE};
use vsrun_model::{Act, ObjId, ObjKind, Tid};

use crate::trace::Trace;

/// A lock that a thread holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hold {
    /// The lock.
    pub lock: ObjId,
    /// For reading, with others.
    pub shared: bool,
}

/// What threads hold, as far as an execution has come.
#[derive(Clone, Default, Debug)]
pub struct Held {
    /// By thread: each as often as it holds it.
    by: Vec<Vec<Hold>>,
}

impl Held {
    /// What is held after the first `steps` steps of an execution.
    pub fn after(trace: &Trace, steps: usize) -> Held {
        let mut held = Held::default();
        (0..steps.min(trace.steps.len())).for_each(|n| held.step(trace, n));
        held
    }

    /// What `thread` holds, each lock once.
    pub fn of(&self, thread: Tid) -> Vec<Hold> {
        let mut all = self.by.get(thread as usize).cloned().unwrap_or_default();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The step at `index` is made.
    pub fn step(&mut self, trace: &Trace, index: usize) {
        let Some(step) = trace.steps.get(index) else { return };
        let act = &step.act;
        let (thread, lock) = (act.tid, act.op.obj);
        match act.op.kind.row().role {
            Role::Acquires(Lock::Mutex | Lock::Spin | Lock::Again) => {
                let again = act.state == owner(thread) && act.obj_kind == ObjKind::MUTEX && is_recursive(trace, lock);
                if act.state == 0 || again {
                    self.takes(thread, Hold { lock, shared: false });
                }
            }
            Role::Acquires(Lock::Read) => {
                let found = RwState::of(act.state);
                if found.owner == 0 && !(found.prefers && found.announced > 0) {
                    self.takes(thread, Hold { lock, shared: true });
                }
            }
            Role::Acquires(Lock::Write | Lock::Announced) => {
                let found = RwState::of(act.state);
                if found.owner == 0 && found.readers == 0 {
                    self.takes(thread, Hold { lock, shared: false });
                }
            }
            Role::Acquires(Lock::Either) => {}
            Role::Releases(Lock::Either) => {
                let shared = i64::from(RwState::of(act.state).owner) != owner(thread);
                self.gives(thread, Hold { lock, shared });
            }
            // Where misuse is allowed another thread's is given back.
            Role::Releases(_) if act.state > 0 => self.gives((act.state - 1) as Tid, Hold { lock, shared: false }),
            Role::WaitsOn if act.state > 0 => {
                self.gives((act.state - 1) as Tid, Hold { lock: act.op.obj2, shared: false });
            }
            Role::Reacquires if gets_back(act, step.value) => {
                self.takes(thread, Hold { lock: act.op.obj2, shared: false });
            }
            _ => {}
        }
    }

    fn takes(&mut self, thread: Tid, hold: Hold) {
        let at = thread as usize;
        if self.by.len() <= at {
            self.by.resize(at + 1, Vec::new());
        }
        self.by[at].push(hold);
    }

    fn gives(&mut self, thread: Tid, hold: Hold) {
        let Some(all) = self.by.get_mut(thread as usize) else { return };
        if let Some(at) = all.iter().rposition(|h| *h == hold) {
            all.remove(at);
        }
    }
}

/// What is recorded of a lock that `thread` owns.
fn owner(thread: Tid) -> i64 {
    i64::from(thread) + 1
}

fn is_recursive(trace: &Trace, lock: ObjId) -> bool {
    trace.flags.get(lock as usize).is_some_and(|flags| flags & MUTEX_TYPE == MUTEX_RECURSIVE)
}

/// The second half of a wait for a condition gets the mutex in this step: not where it only leaves the queue, at a deadline or to end, or
/// passes its wake-up on.
fn gets_back(act: &Act, value: u32) -> bool {
    let gives_up = act.fate & (EXPIRED | CANCELLED) != 0;
    match act.fate & WOKEN != 0 {
        true if act.fate & CANCELLED != 0 => value == 0 && act.state == 0,
        woken => woken || !gives_up,
    }
}

#[cfg(test)]
mod tests {
    use vsrun_model::arena::Step;
    use vsrun_model::{Kind, Op};

    use super::*;

    fn step(tid: Tid, kind: Kind, lock: ObjId, obj_kind: ObjKind, state: i64) -> Step {
        let act = Act { tid, op: Op::on(kind, lock), obj_kind, state, ..Act::NOTHING };
        Step { act, ..Step::default() }
    }

    fn held(steps: Vec<Step>, flags: Vec<u32>) -> Vec<(ObjId, bool)> {
        let trace = Trace { steps, flags, ..Trace::default() };
        Held::after(&trace, usize::MAX).of(1).into_iter().map(|h| (h.lock, h.shared)).collect()
    }

    #[test]
    fn mutexes_count_only_where_they_are_got() {
        let lock = |tid, state| step(tid, Kind::MUTEX_LOCK, 0, ObjKind::MUTEX, state);
        let unlock = |tid, state| step(tid, Kind::MUTEX_UNLOCK, 0, ObjKind::MUTEX, state);
        assert_eq!(held(vec![lock(1, 0)], vec![0]), [(0, false)]);
        // A trylock that fails, and one that another thread holds.
        assert_eq!(held(vec![lock(2, 0), lock(1, 3)], vec![0]), []);
        assert_eq!(held(vec![lock(1, 0), unlock(1, 2)], vec![0]), []);
        // The second one counts if the mutex is recursive.
        let twice = vec![lock(1, 0), lock(1, 2), unlock(1, 2)];
        assert_eq!(held(twice.clone(), vec![MUTEX_RECURSIVE]), [(0, false)]);
        assert_eq!(held(twice, vec![0]), []);
    }

    #[test]
    fn read_write_locks_by_their_mode() {
        let found = |owner, readers, holds| {
            let state = RwState { owner, readers, announced: 0, prefers: false, holds };
            state.pack()
        };
        let on = |kind, state| step(1, kind, 4, ObjKind::RWLOCK, state);
        let read = on(Kind::RW_RDLOCK, found(0, 0, false));
        assert_eq!(held(vec![read], vec![]), [(4, true)]);
        assert_eq!(held(vec![read, on(Kind::RW_UNLOCK, found(0, 1, true))], vec![]), []);
        let write = on(Kind::RW_WRLOCK, found(0, 0, false));
        assert_eq!(held(vec![write], vec![]), [(4, false)]);
        assert_eq!(held(vec![write, on(Kind::RW_UNLOCK, found(2, 0, false))], vec![]), []);
        // A writer that tries while there are readers.
        assert_eq!(held(vec![on(Kind::RW_WRLOCK, found(0, 1, false))], vec![]), []);
    }

    #[test]
    fn a_wait_for_a_condition_gives_the_mutex_back_and_takes_it_again() {
        let lock = step(1, Kind::MUTEX_LOCK, 0, ObjKind::MUTEX, 0);
        let on_both = |kind, state, fate| {
            let mut step = step(1, kind, 7, ObjKind::COND, state);
            (step.act.op.obj2, step.act.fate) = (0, fate);
            step
        };
        let wait = on_both(Kind::COND_WAIT, 2, 0);
        assert_eq!(held(vec![lock, wait], vec![0]), []);
        assert_eq!(held(vec![lock, wait, on_both(Kind::COND_WAKE, 0, WOKEN)], vec![0]), [(0, false)]);
        // At its deadline it leaves the queue first, and takes the mutex in a step of its own.
        let late = on_both(Kind::COND_WAKE, 3, EXPIRED);
        assert_eq!(held(vec![lock, wait, late], vec![0]), []);
        let again = step(1, Kind::COND_LATE, 0, ObjKind::MUTEX, 0);
        assert_eq!(held(vec![lock, wait, late, again], vec![0]), [(0, false)]);
    }
}
