//! Where the stacks of threads are, and where the threads stand on them: what lies below is dead, see `digest`.

use vsrun_model::{ThreadState, Tid};

use super::local::{fiber_of, world};

/// Where the calling function has the stack pointer and what it keeps in registers; the control words of its arithmetic.
macro_rules! stands {
    ($thread:expr) => {
        if crate::gate::local::arena().plan.states {
            let at = crate::gate::stacks::stand_of($thread);
            // SAFETY: it writes these eight words of the arena and nothing else. A place on the stack would make that larger for all programs.
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
                    in(reg) at,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}
pub(super) use stands;

/// Where it is kept where thread `t` stands.
pub fn stand_of(t: Tid) -> *mut u64 {
    fiber_of(t).stand.as_mut_ptr()
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
            fiber_of(t).stack = [0; 2];
        }
    }
}
