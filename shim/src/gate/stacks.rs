//! Where the stacks of threads are, and where the threads stand on them: what lies below is dead, see `digest`.

use vsrun_model::{ThreadState, Tid};

use super::local::{fiber_of, world};

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
            fiber_of(t).stack = [0; 2];
        }
    }
}
