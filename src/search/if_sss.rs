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
//!   threads, the end of a process with several threads, signals, cancellation, yields, tryjoin, wait for any child) all
//!   releases are visible.
//! * A notify needs no lock in POSIX, and who waits meanwhile may miss it: signal and broadcast stay visible. So do posts
//!   of semaphores, which are communication objects in the paper as well.
//! * A transition that ends its thread or leads to a yield is visible, see [`super::sss`].

use std::collections::BTreeSet;

use vsrun_model::arena::Seen;
use vsrun_model::op::{TIMED, TRY};
use vsrun_model::{Act, Key, Kind};

use super::allowed::{named, Allowed};
use super::sss::{Rules, Selective};

/// So often the search begins again because of single locks; then all releases become visible.
const MAX_RESTARTS: u32 = 8;

/// Releases are invisible where nobody can tell.
#[derive(Debug, Default)]
pub struct InvisibleFirst {
    /// Locks that somebody can tell held from free.
    exposed: BTreeSet<Key>,
    /// All locks are exposed.
    all: bool,
    restarts: u32,
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
    /// The lock with this index.
    Lock(u32),
    Everything,
}

/// [`Act::state`] of a release by a thread that owns the lock; a read hold of a rwlock is 0, none 2.
const OWNS: i64 = 1;

fn exposes(act: &Act, seen: &[Seen]) -> Exposes {
    let looks = act.op.has(TRY | TIMED);
    let siblings = || seen.iter().filter(|s| s.act.pid == act.pid).count() > 1;
    match act.op.kind {
        Kind::FORK | Kind::EXEC | Kind::KILL | Kind::CANCEL | Kind::YIELD => Exposes::Everything,
        Kind::EXIT if siblings() => Exposes::Everything,
        Kind::JOIN if looks || act.fate != 0 => Exposes::Everything,
        // Without the number of a process it is any child.
        Kind::WAIT if looks || act.state == 0 => Exposes::Everything,
        Kind::MUTEX_LOCK | Kind::SPIN_LOCK | Kind::RW_RDLOCK | Kind::RW_WRWAIT if looks => Exposes::Lock(act.op.obj),
        Kind::RW_WRLOCK if looks || act.state != 0 => Exposes::Lock(act.op.obj),
        Kind::MUTEX_DESTROY | Kind::RW_DESTROY => Exposes::Lock(act.op.obj),
        Kind::MUTEX_UNLOCK | Kind::SPIN_UNLOCK if act.state != OWNS => Exposes::Lock(act.op.obj),
        Kind::RW_UNLOCK if act.state > OWNS => Exposes::Lock(act.op.obj),
        Kind::COND_WAIT if act.state != OWNS => Exposes::Lock(act.op.obj2),
        _ => Exposes::Nothing,
    }
}

impl Rules for InvisibleFirst {
    fn accept(&mut self, seen: &[Seen], objects: &[Key]) -> bool {
        let mut news = false;
        for s in seen {
            match exposes(&s.act, seen) {
                _ if self.all => {}
                Exposes::Nothing => {}
                Exposes::Everything => (self.all, news) = (true, true),
                Exposes::Lock(lock) => match objects.get(lock as usize) {
                    Some(&key) => news |= self.exposed.insert(key),
                    None => (self.all, news) = (true, true),
                },
            }
        }
        self.restarts += u32::from(news);
        self.all |= self.restarts >= MAX_RESTARTS;
        !news
    }

    fn invisible(&self, seen: &Seen, objects: &[Key], _before: Option<&Act>) -> bool {
        let act = &seen.act;
        let releases = match act.op.kind {
            Kind::MUTEX_UNLOCK | Kind::SPIN_UNLOCK => act.state == OWNS,
            Kind::RW_UNLOCK => act.state <= OWNS,
            _ => false,
        };
        releases
            && !self.all
            && named(act, objects).is_some_and(|locks| locks.iter().all(|o| !self.exposed.contains(&o.key)))
    }
}
