//! What of vsrun's memory the program has no business in: where an execution is guarded, the arena can only be read while
//! the program's own code runs, so that what writes there faults where it does. Every way into the library opens it, and
//! the way out of the outermost one closes it again.

use core::mem::size_of;

use vsrun_model::arena::{Arena, ARENA_ADDR, GUARDED_ALWAYS};

use super::local::{arena, local, world};
use crate::sys::raw;

/// The program's code begins to run: a process, a thread, a handler.
#[inline]
pub fn close() {
    if local().calls < arena().control.guarded && !local().outside {
        may_close();
    }
}

/// What this costs grows with the memory that is in use: it is for some calls ([`Control::guards`](vsrun_model::arena::Control::guards)), few threads and
/// few records of watched memory, unless it is to be always.
#[cold]
fn may_close() {
    const MAX_THREADS: u32 = 256;
    const MAX_RECORDS: u32 = 1 << 13;
    let allowed = arena().control.guarded;
    let costly = world().threads.len > MAX_THREADS || arena().records.kept() > MAX_RECORDS;
    if allowed != GUARDED_ALWAYS && costly {
        local().calls = allowed;
        return;
    }
    local().outside = true;
    let n = local().calls;
    local().calls = n.saturating_add(1);
    if !arena().control.guards(n) {
        return;
    }
    local().closed = true;
    protect(libc::PROT_READ);
}

/// The program's code has called the library. True: nothing of that had called it yet, and [`leave`] may close the arena.
#[inline]
pub fn enter() -> bool {
    local().outside && {
        local().outside = false;
        if local().closed {
            open();
        }
        true
    }
}

/// The call is over.
#[inline]
pub fn leave(entered: bool) {
    if entered {
        close();
    }
}

/// A fault at `address`, of the instruction at `rip`: true if the library itself wanted to write, which it may do now.
pub fn is_own(address: u64, rip: u64) -> bool {
    let (low, high) = local().text;
    let own =
        local().closed && address.wrapping_sub(ARENA_ADDR) < size_of::<Arena>() as u64 && (low..high).contains(&rip);
    if own {
        // Without an end that closes it again.
        local().outside = false;
        open();
    }
    own
}

#[cold]
fn open() {
    local().closed = false;
    protect(libc::PROT_READ | libc::PROT_WRITE);
}

#[cold]
fn protect(how: i32) {
    raw!(libc::SYS_mprotect, ARENA_ADDR, size_of::<Arena>(), how);
}
