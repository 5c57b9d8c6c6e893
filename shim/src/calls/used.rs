//! Locks, semaphores and the like as memory: that one is used is a read of where it lies, and that one is set up is a write. So who frees, unmaps, overwrites or
//! sets up what another thread uses is a use of the same memory, and each order of the two is explored. What they do to each other is told by their
//! operations; the memory that shows the state of an object is written by the shim, which is no use.

use vsrun_model::library::{number, FUNCTIONS};
use vsrun_model::watch::Entry;

use crate::gate::{local, Phase};
use crate::watch;

/// The number of a function that is known.
pub const fn site(function: &str) -> u32 {
    let n = number(function);
    assert!(n < FUNCTIONS.len());
    Entry::FUNCTION | n as u32
}

#[inline]
fn is_told() -> bool {
    watch::is_recording() && local().phase == Phase::Running && !local().borrowed
}

/// The object at `at`, which has not been looked up yet, is about to be used by the function of that number ([`site`]): another thread may have its turn first.
#[inline]
pub fn used(at: u64, site: u32) {
    if is_told() {
        watch::begins();
        watch::call_reads(at, 4, site);
    }
}

/// `size` bytes at `at` are about to become an object, by the function of that number.
pub fn set_up(at: u64, size: u64, site: u32) {
    if is_told() {
        watch::begins();
        watch::renews(at, size, site);
    }
}
