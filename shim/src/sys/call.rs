//! Raw system calls and processor state. They lie in the shim's text, which Syscall User Dispatch exempts.

use core::arch::asm;

use super::track;

/// A system call with six arguments; returns the kernel's value (negative error numbers). `track` looks at it.
#[inline(always)]
pub fn raw6(nr: i64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    match track::is_harmless(nr) {
        true => bare(nr, [a, b, c, d, e, f]),
        false => track::tracked(nr, [a, b, c, d, e, f]),
    }
}

/// The same, looked at by nobody.
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

/// The same with up to six arguments, the rest 0.
macro_rules! raw {
    ($nr:expr) => {
        $crate::sys::call::raw6($nr, 0, 0, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr) => {
        $crate::sys::call::raw6($nr, $a as u64, 0, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr) => {
        $crate::sys::call::raw6($nr, $a as u64, $b as u64, 0, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr) => {
        $crate::sys::call::raw6($nr, $a as u64, $b as u64, $c as u64, 0, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr) => {
        $crate::sys::call::raw6($nr, $a as u64, $b as u64, $c as u64, $d as u64, 0, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => {
        $crate::sys::call::raw6($nr, $a as u64, $b as u64, $c as u64, $d as u64, $e as u64, 0)
    };
    ($nr:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        $crate::sys::call::raw6($nr, $a as u64, $b as u64, $c as u64, $d as u64, $e as u64, $f as u64)
    };
}
pub(crate) use raw;

/// A pattern for the numbers of these system calls.
macro_rules! any_of {
    ($($name:ident)*) => { $(libc::$name)|* };
}
pub(crate) use any_of;

/// How much of `resource` (RLIMIT_..) the program may have.
pub fn limit(resource: u32) -> u64 {
    let mut limit = [0u64; 2];
    raw!(libc::SYS_prlimit64, 0, resource, 0, limit.as_mut_ptr());
    limit[0]
}

/// The thread pointer.
#[inline]
pub fn fs_base() -> u64 {
    let v: u64;
    // SAFETY: reads a register; vsrun checks for FSGSBASE before it starts a program.
    unsafe { asm!("rdfsbase {}", out(reg) v, options(nomem, nostack)) };
    v
}

/// Ends this process for the kernel.
pub fn die(status: i32) -> ! {
    loop {
        raw!(libc::SYS_exit_group, status);
    }
}

/// Writes zeros from one address of whole words to another one.
pub fn fill(from: u64, to: u64) {
    // SAFETY: whoever calls has found writable memory of the process's own there.
    unsafe {
        asm!("rep stosq", inout("rcx") (to - from) / 8 => _, inout("rdi") from => _, in("rax") 0u64,
             options(nostack, preserves_flags));
    }
}

/// Copies a page.
#[inline]
pub fn copy_page(from: u64, to: u64) {
    // SAFETY: whoever calls has found a readable page there, and a writable one.
    unsafe {
        asm!("rep movsq", inout("rcx") 512u64 => _, inout("rsi") from => _, inout("rdi") to => _,
             options(nostack, preserves_flags));
    }
}
