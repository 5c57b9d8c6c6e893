//! Where the stacks of threads are, and where the threads stand on them: what lies below is dead, see `digest`.

use vsrun_model::arena::PAGE;
use vsrun_model::library::number;
use vsrun_model::watch::{Entry, Gone};
use vsrun_model::{ThreadState, Tid};

use super::local::{arena, fiber_of, local, machine, world};
use super::{end, own, watched};
use crate::sys::readable;
use crate::watch;

/// Where the calling function has the stack pointer and what it keeps in registers; the control words of its arithmetic.
macro_rules! stands {
    ($thread:expr) => {
        if crate::gate::local::arena().plan.states {
            let mut at = [0u64; 8];
            // SAFETY: it writes these words and nothing else.
            unsafe {
                core::arch::asm!(
                    "mov [{0}], rsp",
                    "mov [{0} + 8], rbx",
                    "mov [{0} + 16], rbp",
                    "mov [{0} + 24], r12",
                    "mov [{0} + 32], r13",
                    "mov [{0} + 40], r14",
                    "mov [{0} + 48], r15",
                    "stmxcsr [{0} + 56]",
                    "fnstcw [{0} + 60]",
                    in(reg) at.as_mut_ptr(),
                    options(nostack, preserves_flags),
                );
            }
            crate::gate::stacks::stands_at($thread, at);
        }
    };
}
pub(super) use stands;

/// Thread `t` stands there.
pub fn stands_at(t: Tid, at: [u64; 8]) {
    fiber_of(t).stand = at;
}

/// The new thread `t` has that stack, which is libc's or not, and nobody else has.
pub fn begins_on(t: Tid, [low, high]: [u64; 2], of_libc: bool) {
    is_gone(low, high);
    (fiber_of(t).stack, fiber_of(t).of_libc) = ([low, high], of_libc);
}

/// Where threads that are over had their stacks nobody has followed so far.
pub fn forget_the_dead() {
    for t in 0..world().threads.len {
        if world().threads[t].state == ThreadState::EXITED {
            fiber_of(t).stack = [0; 2];
        }
    }
}

/// What lay from `start` to `end` is not there any more, or something else is.
pub fn is_gone(start: u64, end: u64) {
    for t in 0..world().threads.len {
        let [low, high] = fiber_of(t).stack;
        if low < end && start < high {
            if fiber_of(t).stack_over && world().threads[t].pid == local().pid {
                each_page_of_others(t, watch::forget);
                watched::mark_objects();
            }
            fiber_of(t).stack = [0; 2];
        }
    }
}

/// Where thread `t` has its stack, the upper part of it, and above it its thread-local variables.
fn range(t: Tid) -> [u64; 2] {
    // Further up they are not libc's. Further down little lies that is meant for others.
    const MOST: u64 = 1 << 20;
    const LOOKED_AT: u64 = 256 << 10;
    let ([low, high], fs) = (fiber_of(t).stack, fiber_of(t).fs);
    [low.max(high.saturating_sub(LOOKED_AT)), if high > 0 && fs > high && fs - high < MOST { fs } else { high }]
}

/// The pages of these, by address and size: those that other threads use as well, where that is known.
fn each_page_of_others(t: Tid, mut f: impl FnMut(u64, u64)) {
    let [low, high] = range(t);
    let mut part = |at: u64| f(at.max(low), PAGE.min(high - at));
    if own::is_on() {
        let pages = arena().common.as_slice().iter().map(|page| page * PAGE);
        pages.filter(|at| (low..high).contains(at)).for_each(part);
    } else {
        (low & !(PAGE - 1)..high).step_by(PAGE as usize).for_each(&mut part);
    }
}

/// The running thread is about to end, and its stack with it: that is a write to it, as of a block that is freed, and who uses it from now on is told.
pub fn ends() {
    const ENDS: u32 = Entry::FUNCTION | number("pthread_exit") as u32;
    let cur = local().cur;
    if !watch::is_recording() || !fiber_of(cur).of_libc || local().borrowed {
        return;
    }
    let [low, high] = range(cur);
    own::gives_up(low, high);
    let mut any = false;
    each_page_of_others(cur, |at, size| {
        any = true;
        watch::renews(at, size, ENDS);
    });
    if any {
        watched::transition_ends();
        fiber_of(cur).stack_over = true;
        each_page_of_others(cur, watch::is_special);
    }
}

/// The shadow is empty: they are to be found by it again.
pub fn mark() {
    (0..world().threads.len).filter(|&t| is_over(t)).for_each(|t| each_page_of_others(t, watch::is_special));
}

fn is_over(t: Tid) -> bool {
    fiber_of(t).stack_over && fiber_of(t).stack != [0; 2] && world().threads[t].pid == local().pid
}

/// Where memory at `address` is to be used by the running thread, that is not the stack of a thread that is over. `site`: as in [`Entry`].
pub fn look(address: u64, size: u64, site: u32, writes: bool) {
    let holds = |t: &Tid| {
        let [low, high] = range(*t);
        is_over(*t) && address < high && address + size > low
    };
    // Where nothing is there any more that is a crash.
    let over = (0..world().threads.len).find(holds).filter(|_| readable(address, size) == size);
    if let Some(owner) = over {
        let entry = [site, (size as u32) << 2 | u32::from(writes)];
        machine().note_gone(Gone { block: owner.into(), size: 0, address, entry });
        end::freed(&[b"use of memory that is gone: the stack, or a thread-local variable, of a thread that has ended"]);
    }
}
