//! Raw system calls and processor state. They lie in the shim's text, which Syscall User Dispatch exempts.

use core::arch::asm;

use super::bare::bare;
use super::track;

/// A system call with six arguments; returns the kernel's value (negative error numbers). `track` looks at it.
#[inline(always)]
pub fn raw6(nr: i64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
    match track::is_harmless(nr) {
        true => bare(nr, [a, b, c, d, e, f]),
        false => track::tracked(nr, [a, b, c, d, e, f]),
    }
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
