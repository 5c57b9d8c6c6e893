//! Invisible-first search (IF-SSS: Stoller, TR 536, Section 4): in a state in which an invisible transition is enabled,
//! its thread moves alone, which is a persistent set of its own (Theorem 2).
//!
//! In the paper an operation on a synchronization object is invisible if it cannot block and nobody can tell when it is
//! performed: release, notify, notifyAll. The reason is that without owning the lock one can only wait for it
//! (SyncWithoutLock). With POSIX objects that does not hold in general, and where it does not, or is not known to, the
//! operation stays visible:
//! * A release of a lock by its owner is invisible as long as no operation has been seen, pending in any state explored,
//!   that can tell whether the lock is held: try and timed acquires, destruction, release without owning it, the
//!   announcement of a writer on a lock that prefers writers. What would be reachable only behind such an operation is
//!   reachable by visible transitions up to it, so the search gets to see one if there is one. It then begins again with
//!   the releases of that lock visible.
//! * After an operation that can tell a transition of a thread from the next in other ways (fork and exec beside other
//!   threads, the end of a process with several threads, signals, cancellation, yields, polls in vain, tryjoin, wait for any child) all
//!   releases are visible.
//! * A notify needs no lock in POSIX, and who waits meanwhile may miss it. Signal and broadcast are invisible if their
//!   thread holds the mutex with which all waits on the condition variable were seen, as long as none has been seen
//!   that does not hold it, nor a wait that gives up (which leaves the queue without the mutex), nor the destruction of the condition variable. Until a wait has been seen the mutex is not
//!   known, and the notify visible.
//! * Posts of semaphores are visible: these are communication objects in the paper as well.
//! * Uses of memory are operations where threads use it without an order at some time, or where it is declared so. They are invisible as long as
//!   all uses of the same bytes have been seen under a common lock ([`super::protected`]).
//! * A transition that ends its thread or leads to a yield is visible, see [`super::sss`].

use std::collections::{BTreeMap, BTreeSet};

use vsrun_model::arena::Seen;
use vsrun_model::depend::{releases_held, RwState, GIVES_WAY};
use vsrun_model::kind::{Lock, Role};
use vsrun_model::{Act, Key, Kind};

use super::allowed::{named, Allowed};
use super::node::{Rules, State};
use super::protected::Protected;
use super::sss::Selective;

/// So often the search begins again because of single locks; then all releases become visible.
const MAX_RESTARTS: u32 = 8;

/// Releases are invisible where nobody can tell.
#[derive(Debug, Default)]
pub struct InvisibleFirst {
    /// Locks that somebody can tell held from free, condition variables that are notified without their mutex.
    exposed: BTreeSet<Key>,
    /// Everything is exposed.
    all: bool,
    /// The mutex with which threads wait on a condition variable.
    partners: BTreeMap<Key, Key>,
    restarts: u32,
    memory: Protected,
}

/// The invisible-first search.
pub type IfSss = Selective<InvisibleFirst>;

impl IfSss {
    /// A search that has not begun.
    pub fn new(bounds: Box<dyn Allowed>) -> IfSss {
        Selective::with(InvisibleFirst::default(), bounds)
    }
}

/// What a pending operation exposes.
enum Exposes {
    Nothing,
    /// The lock, or condition variable, with this index.
    Lock(u32),
    Everything,
}

fn exposes(act: &Act, seen: &[Seen]) -> Exposes {
    let row = act.op.kind.row();
    let siblings = || seen.iter().filter(|s| s.act.pid == act.pid).count() > 1;
    // A word that is read or written says nothing of locks; a loop that waits for one may.
    let word = matches!(act.op.kind, Kind::MEM_READ | Kind::MEM_WRITE) && !act.op.looks();
    if act.fate & GIVES_WAY != 0 || act.op.signals != 0 || !word && (row.tells)(act, siblings()) {
        return Exposes::Everything;
    }
    match row.role {
        Role::Acquires(Lock::Write) if RwState::of(act.state).prefers => Exposes::Lock(act.op.obj),
        Role::Acquires(_) if act.op.looks() => Exposes::Lock(act.op.obj),
        Role::Destroys => Exposes::Lock(act.op.obj),
        Role::Releases(_) if !releases_held(act) => Exposes::Lock(act.op.obj),
        Role::WaitsOn if !releases_held(act) => Exposes::Lock(act.op.obj2),
        _ => Exposes::Nothing,
    }
}

impl InvisibleFirst {
    /// Everything is exposed.
    pub(super) fn is_all(&self) -> bool {
        self.all
    }

    /// Exposes everything.
    pub(super) fn expose_all(&mut self) {
        self.all = true;
    }

    /// Whether somebody can tell if the lock is held.
    pub(super) fn exposes(&self, lock: &Key) -> bool {
        self.all || self.exposed.contains(lock)
    }

    /// All that the operation does is to use memory that locks protect.
    pub(super) fn protects(&self, act: &Act, state: State) -> bool {
        !self.all && self.memory.protects(act, state)
    }

    /// Takes note of what the pending operation `act` shows. True: it shows something new.
    fn learn(&mut self, act: &Act, state: State) -> bool {
        let key = |object: u32| state.objects.get(object as usize).copied();
        let exposed = match exposes(act, state.seen) {
            Exposes::Nothing => return self.learn_partner(act, state),
            Exposes::Lock(lock) => key(lock),
            Exposes::Everything => None,
        };
        match exposed {
            Some(key) => self.exposed.insert(key),
            None => !std::mem::replace(&mut self.all, true),
        }
    }

    /// A wait shows the mutex that goes with the condition variable; a second one, a notify without it, or a wait that gives up, exposes
    /// the condition variable.
    fn learn_partner(&mut self, act: &Act, state: State) -> bool {
        let key = |object: u32| state.objects.get(object as usize).copied();
        let Some(cond) = key(act.op.obj) else { return false };
        match (act.op.kind.row().role, self.partners.get(&cond)) {
            // It leaves the queue without the mutex.
            _ if act.gives_up_waiting() => self.exposed.insert(cond),
            (Role::WaitsOn, None) => {
                self.partners.extend(key(act.op.obj2).map(|mutex| (cond, mutex)));
                false
            }
            (Role::WaitsOn, Some(&mutex)) if key(act.op.obj2) != Some(mutex) => self.exposed.insert(cond),
            (Role::Notifies, Some(_)) if !self.holds_partner(act, state) => self.exposed.insert(cond),
            _ => false,
        }
    }

    /// The thread of the notify `act` holds the mutex that goes with its condition variable.
    fn holds_partner(&self, act: &Act, state: State) -> bool {
        let partner = state.objects.get(act.op.obj as usize).and_then(|cond| self.partners.get(cond));
        let mut held = state.held.range((act.tid, 0)..=(act.tid, u32::MAX));
        partner.is_some() && held.any(|&(_, mutex)| state.objects.get(mutex as usize) == partner)
    }
}

impl Rules for InvisibleFirst {
    fn accept(&mut self, state: State) -> bool {
        let (mut news, mut violated) = (false, false);
        for s in state.seen {
            news |= !self.all && self.learn(&s.act, state);
            violated |= !self.all && self.memory.learn(&s.act, state);
        }
        self.restarts += u32::from(news);
        self.all |= self.restarts >= MAX_RESTARTS;
        !news && !violated
    }

    fn invisible(&self, act: &Act, state: State) -> bool {
        if self.protects(act, state) {
            return true;
        }
        let harmless = match act.op.kind.row().role {
            Role::Releases(_) => releases_held(act),
            Role::Notifies => self.holds_partner(act, state),
            _ => false,
        };
        harmless
            && !self.all
            && named(act, state.objects).is_some_and(|all| all.iter().all(|o| !self.exposed.contains(&o.key)))
    }
}
