//! Syscall User Dispatch: every system call that does not come from the shim's own text becomes a SIGSYS.

use core::cell::UnsafeCell;

use super::{raw, store};

/// The prctl for it.
pub const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const BLOCK: u8 = 1;

struct Selector(UnsafeCell<u8>);
// SAFETY: one kernel thread a process; only the kernel reads it.
unsafe impl Sync for Selector {}
static SELECTOR: Selector = Selector(UnsafeCell::new(0));

/// Arms it in this kernel thread; the text in [low, high) stays exempt. False: the kernel refuses.
pub fn arm((low, high): (u64, u64)) -> bool {
    let selector = SELECTOR.0.get();
    store(selector as u64, BLOCK);
    raw!(libc::SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, low, high - low, selector) >= 0
}

/// Takes it back.
pub fn disarm() {
    raw!(libc::SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
}
