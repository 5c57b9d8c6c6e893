//! Pages of memory that one thread alone uses: what is done there conflicts with nothing, so it need not be recorded in each transition.
//!
//! NOTE [Own pages] The first thread that comes to a page has it as its own: its accesses there are not handed over, and stay marked as long as no
//! other thread of the process runs, so it comes to no slow path for them again (`watch::switches`). Another thread finds no marks, so its
//! first access there is seen at the end of its transition. Then the page is common, and vsrun is told ([`Arena::meets`](vsrun_model::Arena::meets)), since what the first
//! one did is not known: it runs the same schedule once more, with this page common from the start. So in an execution that nothing was told of, each page
//! is common, and all that is done there is recorded, or one thread alone has used it.
//!
//! Where that is not so simple nothing is taken for anybody's own, in the whole execution, once vsrun is told of
//! [`ALL_PAGES`]: memory that processes share has several addresses; what the child of a fork reads counts as read by its creator,
//! which matters where the creator's process has had several threads; who may use memory may have been said (`VS_own`).

use vsrun_model::arena::{ALL_PAGES, POOL_ADDR, POOL_SIZE};
use vsrun_model::watch::{Entry, FENCE};

use super::local::{arena, local, machine};
use crate::watch::{self, Use};

/// Bits of an address within its page.
const PAGE_BITS: u32 = 12;
/// An access to more pages is remembered as a whole.
const WIDE: u64 = 2048;

/// What is done to memory is recorded from now on.
#[cold]
pub fn begin() {
    if watch::is_mapped() && arena().plan.own_pages {
        let (pages, more) = watch::pages();
        pages.is_on = true;
        arena().common.as_slice().iter().for_each(|&page| pages.is_common(more, page));
    }
}

/// Some pages may be a thread's own.
#[inline]
pub fn is_on() -> bool {
    arena().plan.own_pages && watch::pages().0.is_on
}

/// No page may be anybody's own in this execution.
#[cold]
pub fn ends() {
    if is_on() {
        watch::pages().0.is_on = false;
        watch::switches();
        machine().meets(ALL_PAGES);
    }
}

/// This process gets another thread.
pub fn creates() {
    if watch::is_mapped() && arena().plan.own_pages {
        watch::pages().0.several = true;
    }
}

/// The process is about to be copied: what it has done must be known if it was not all done by the thread that copies it.
pub fn forks() {
    if watch::is_mapped() && arena().plan.own_pages && watch::pages().0.several {
        ends();
    }
}

/// This process is a copy of another one, with memory and a thread of its own.
pub fn is_copy() {
    if watch::is_mapped() && arena().plan.own_pages {
        watch::switches();
        let (pages, more) = watch::pages();
        pages.clear(more);
        if pages.is_on {
            begin();
        }
    }
}

/// The running thread has nothing to do any more with the memory from `low` to `high`, all of which was its own by right: who has used some is told, and who uses
/// what lies uppermost later.
pub fn gives_up(low: u64, high: u64) {
    const UPPERMOST: u64 = 2;
    if is_on() {
        let (pages, more) = watch::pages();
        let (thread, last) = (local().cur, high.saturating_sub(1) >> PAGE_BITS);
        pages.gives_up((low >> PAGE_BITS, last), thread, |page| machine().meets(page));
        for page in last.saturating_sub(UPPERMOST - 1)..=last {
            if pages.uses(more, page, thread) == Use::Meets {
                machine().meets(page);
            }
        }
    }
}

/// The running thread has made the accesses of an entry, and all of their pages are its own.
pub fn is_own(entry: &Entry) -> bool {
    if entry.address == FENCE {
        return false;
    }
    if local().n_ranges > 0 {
        if watch::pages().0.any {
            ends();
        }
        return false;
    }
    if !entry.is_strided() {
        return is_own_range(entry.address, entry.size());
    }
    // Each page has to be looked at.
    let mut own = true;
    for part in entry.parts() {
        own &= is_own_range(part.address, part.size());
    }
    own
}

#[inline]
fn is_own_range(address: u64, size: u64) -> bool {
    if address.wrapping_sub(POOL_ADDR) < POOL_SIZE {
        return false;
    }
    let thread = local().cur;
    let (first, last) = (address >> PAGE_BITS, address.saturating_add(size.saturating_sub(1)) >> PAGE_BITS);
    let (pages, more) = watch::pages();
    if last - first >= WIDE {
        if !pages.uses_all(more, (first, last), thread, |page| machine().meets(page)) {
            ends();
        }
        return false;
    }
    let mut own = true;
    for page in first..=last {
        let how = pages.uses(more, page, thread);
        own &= how == Use::Own;
        if how == Use::Meets {
            machine().meets(page);
        }
    }
    own
}
