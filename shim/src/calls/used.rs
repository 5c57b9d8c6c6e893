//! Locks, semaphores and the like as memory: that one is used is a read of where it lies, and that one is set up is a write. So who frees, unmaps, overwrites or
//! sets up what another thread uses is a use of the same memory, and each order of the two is explored. What they do to each other is told by their
//! operations; the memory that shows the state of an object is written by the shim, which is no use.

use vsrun_model::library::{number, FUNCTIONS};
use vsrun_model::watch::Entry;
use vsrun_model::Kind;

use crate::gate::{local, Phase};
use crate::watch;

/// The number of a function that is known.
pub const fn site(function: &str) -> u32 {
    let n = number(function);
    assert!(n < FUNCTIONS.len());
    Entry::FUNCTION | n as u32
}

const LOCKS: u32 = site("pthread_mutex_lock");
const UNLOCKS: u32 = site("pthread_mutex_unlock");

/// The function that does `kind`, for reports.
#[inline]
fn site_of(kind: Kind) -> u32 {
    match kind {
        Kind::MUTEX_LOCK => LOCKS,
        Kind::MUTEX_UNLOCK => UNLOCKS,
        other => site_of_others(other),
    }
}

fn site_of_others(kind: Kind) -> u32 {
    match kind {
        Kind::MUTEX_DESTROY => const { site("pthread_mutex_destroy") },
        Kind::SPIN_LOCK => const { site("pthread_spin_lock") },
        Kind::SPIN_UNLOCK => const { site("pthread_spin_unlock") },
        Kind::RW_RDLOCK => const { site("pthread_rwlock_rdlock") },
        Kind::RW_WRLOCK => const { site("pthread_rwlock_wrlock") },
        Kind::RW_UNLOCK => const { site("pthread_rwlock_unlock") },
        Kind::RW_DESTROY => const { site("pthread_rwlock_destroy") },
        Kind::COND_WAIT => const { site("pthread_cond_wait") },
        Kind::COND_SIGNAL => const { site("pthread_cond_signal") },
        Kind::COND_BROADCAST => const { site("pthread_cond_broadcast") },
        Kind::COND_DESTROY => const { site("pthread_cond_destroy") },
        Kind::BARRIER_WAIT => const { site("pthread_barrier_wait") },
        Kind::BARRIER_DESTROY => const { site("pthread_barrier_destroy") },
        Kind::SEM_WAIT => const { site("sem_wait") },
        Kind::SEM_POST => const { site("sem_post") },
        Kind::SEM_GET => const { site("sem_getvalue") },
        _ => const { site("sem_destroy") },
    }
}

#[inline]
fn is_told() -> bool {
    watch::is_recording() && local().phase == Phase::Running && !local().borrowed
}

/// The object at `at` is about to be used by an operation of this kind, which has not been looked up yet: another thread may have its turn first.
#[inline]
pub fn used(at: u64, kind: Kind) {
    if is_told() {
        watch::begins();
        watch::call_reads(at, 4, site_of(kind));
    }
}

/// `size` bytes at `at` are about to become an object, by the function of that number.
pub fn set_up(at: u64, size: u64, site: u32) {
    if is_told() {
        watch::begins();
        watch::sets_up(at, size, site);
    }
}
