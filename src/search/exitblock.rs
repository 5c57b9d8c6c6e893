//! ExitBlock and ExitBlockRW (Bruening 1999) as the special cases of invisible-first search as which Stoller describes
//! them (TR 536, Section 11): there are no persistent sets; ExitBlock lets nothing sleep, in ExitBlockRW blocks sleep
//! whose operations are on different objects or only read.
//!
//! Both switch only where a lock is released (wait included): once a thread has acquired a lock it goes on, with
//! further acquires and notifies, up to and including its next release. An acquire that finds its lock taken blocks its
//! thread, and then others go on; the originals take the whole block back at that point.
//!
//! So a state in which two threads hold one lock each and both want the other's is not reached, and such deadlocks are
//! missed. (Bruening's ExitBlock looks for locks taken in opposite order instead, which is not done here.) For this
//! reason neither search ever claims to be complete; they are here to be compared with. Operations that they do not
//! know (semaphores, joins and all else that is no lock) are visible.

use vsrun_model::kind::Role;
use vsrun_model::{dependent_after, Act, Effects};

use super::allowed::Unknown;
use super::node::{Rules, State};
use super::sss::Selective;

/// Switches only at releases.
#[derive(Debug)]
pub struct AtReleases {
    /// ExitBlockRW.
    rw: bool,
}

/// ExitBlock or ExitBlockRW.
pub type ExitBlock = Selective<AtReleases>;

impl ExitBlock {
    /// ExitBlock, before it has begun.
    pub fn plain() -> ExitBlock {
        Selective::with(AtReleases { rw: false }, Box::new(Unknown))
    }

    /// ExitBlockRW, before it has begun.
    pub fn reads_and_writes() -> ExitBlock {
        Selective::with(AtReleases { rw: true }, Box::new(Unknown))
    }
}

fn releases(act: &Act) -> bool {
    matches!(act.op.kind.row().role, Role::Releases(_) | Role::WaitsOn)
}

fn acquires(act: &Act) -> bool {
    matches!(act.op.kind.row().role, Role::Acquires(_) | Role::Reacquires) && !act.gives_up_waiting()
}

fn notifies(act: &Act) -> bool {
    act.op.kind.row().role == Role::Notifies
}

impl Rules for AtReleases {
    fn invisible(&self, act: &Act, state: State) -> bool {
        let goes_on = |b: &Act| b.uid == act.uid && (acquires(b) || notifies(b));
        state.before.is_some_and(goes_on) && (acquires(act) || notifies(act) || releases(act))
    }

    fn shows_its_end(&self) -> bool {
        false
    }

    fn persistent(&self) -> bool {
        false
    }

    fn wakes(&self, sleeper: &(Act, Effects), moving: &(Act, Effects)) -> bool {
        !self.rw || dependent_after(&sleeper.0, sleeper.1, &moving.0, moving.1, false)
    }

    fn sleeps_in_blocks(&self) -> bool {
        true
    }

    fn caveat(&self) -> Option<&'static str> {
        Some("switches came only where a lock was released: deadlocks of threads that hold a lock each may be missed")
    }
}
