//! Where blocks of the heap were given out and freed: the last ones of each process, so that a report can say so. Kept are registers and what lies on
//! the stack; vsrun finds the callers from that, when there is something to report.
//!
//! NOTE [In turn] They go round, one behind the other, so that an execution touches as many pages as it needs; how many there are is on the page of the first.

// The library that does not see the heap has none of them.
#![cfg_attr(not(feature = "heap"), allow(dead_code))]

use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use vsrun_model::watch::{Origin, ORIGINS, ORIGIN_WORDS};

use super::local::local;
use crate::sys::{load, readable};

#[repr(C, align(4096))]
struct Kept {
    /// How many there have been.
    n: AtomicU64,
    all: [Origin; ORIGINS],
}

struct Cell(UnsafeCell<Kept>);
// SAFETY: a process of a world has one kernel thread, and no borrow is kept across a switch of fibers.
unsafe impl Sync for Cell {}

static KEPT: Cell = Cell(UnsafeCell::new(Kept { n: AtomicU64::new(0), all: [Origin::NONE; ORIGINS] }));

/// Where they are, for vsrun.
pub fn table() -> u64 {
    if cfg!(feature = "heap") {
        KEPT.0.get() as u64 + core::mem::offset_of!(Kept, all) as u64
    } else {
        0
    }
}

/// The running thread gives out, or frees, that block, here.
#[inline(never)]
pub fn note(block: u64, size: u64, freed: bool) {
    let mut registers = [0u64; 8];
    // SAFETY: registers are stored into an array of this function's, nothing else is touched.
    unsafe {
        asm!(
            "mov [rax], rbx", "mov [rax + 8], rbp", "mov [rax + 16], rsp", "mov [rax + 24], r12", "mov [rax + 32], r13",
            "mov [rax + 40], r14", "mov [rax + 48], r15", "lea rcx, [rip]", "mov [rax + 56], rcx",
            in("rax") registers.as_mut_ptr(), out("rcx") _, options(nostack, preserves_flags)
        );
    }
    let from = registers[2];
    // A stack may end behind the page on which it is.
    let there = readable(from, 8 * ORIGIN_WORDS as u64);
    // SAFETY: see `Cell`.
    let kept = unsafe { &mut *KEPT.0.get() };
    // In one instruction: a page that is read first and written then comes by two faults.
    let number = kept.n.fetch_add(1, Relaxed) + 1;
    let origin = &mut kept.all[number as usize % ORIGINS];
    (origin.number, origin.block, origin.size) = (number, block, size);
    (origin.thread, origin.freed, origin.registers) = (local().cur, u16::from(freed), registers);
    origin.words = (there / 8) as u16;
    for (n, word) in origin.stack[..usize::from(origin.words)].iter_mut().enumerate() {
        *word = load(from + 8 * n as u64);
    }
}
