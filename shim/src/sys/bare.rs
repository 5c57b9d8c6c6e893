//! System calls that nobody looks at, and a copy of a page: what `call` and `track` stand on.

use core::arch::asm;

/// A system call with six arguments, looked at by nobody; returns the kernel's value (negative error numbers).
#[inline(always)]
pub fn bare(nr: i64, [a, b, c, d, e, f]: [u64; 6]) -> i64 {
    let r: i64;
    // SAFETY: the kernel checks its arguments; calls that change this process's memory are made where that is meant.
    unsafe {
        asm!("syscall", inlateout("rax") nr => r, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
             in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    r
}

/// A pattern for the numbers of these system calls.
macro_rules! any_of {
    ($($name:ident)*) => { $(libc::$name)|* };
}
pub(crate) use any_of;

/// Copies a page.
#[inline]
pub fn copy_page(from: u64, to: u64) {
    // SAFETY: whoever calls has found a readable page there, and a writable one.
    unsafe {
        asm!("rep movsq", inout("rcx") 512u64 => _, inout("rsi") from => _, inout("rdi") to => _,
             options(nostack, preserves_flags));
    }
}
