//! Stacks, and thread-local variables, of threads that are over: whoever uses them is told, as of a block of the heap that was freed.

use vsrun_model::arena::PAGE;
use vsrun_model::watch::Gone;
use vsrun_model::Tid;

use super::local::{arena, fiber_of, local, machine, world};
use super::{end, own};
use crate::sys::readable;
use crate::watch;

/// So much of a stack, from its upper end, is looked at: marking all of it would cost more than most executions take.
const UPPER: u64 = 16 << 10;
/// Thread-local variables of libc's making take at most so much.
const VARIABLES: u64 = 1 << 20;

/// Where the upper part of the stack of thread `t` begins, and where its thread-local variables, which lie above it, end.
pub fn range(t: Tid) -> [u64; 2] {
    let ([low, high], fs) = (fiber_of(t).stack, fiber_of(t).fs);
    let has_variables = high > 0 && fs > high && fs - high < VARIABLES;
    [low.max(high.saturating_sub(UPPER)), if has_variables { fs } else { high }]
}

/// The pages of these, by address and size: those that other threads use as well, where that is known.
pub fn each_page_of_others(t: Tid, mut f: impl FnMut(u64, u64)) {
    let [low, high] = range(t);
    let mut part = |at: u64| f(at.max(low), PAGE.min(high - at));
    if own::is_on() {
        let pages = arena().common.as_slice().iter().map(|page| page * PAGE);
        pages.filter(|at| (low..high).contains(at)).for_each(part);
    } else {
        (low & !(PAGE - 1)..high).step_by(PAGE as usize).for_each(&mut part);
    }
}

/// The shadow is empty: they are to be found by it again.
pub fn mark() {
    (0..world().threads.len).filter(|&t| is_over(t)).for_each(|t| each_page_of_others(t, watch::is_special));
}

fn is_over(t: Tid) -> bool {
    fiber_of(t).stack_over && fiber_of(t).stack != [0; 2] && world().threads[t].pid == local().pid
}

/// Where memory at `address` is to be used by the running thread, that is not the stack of a thread that is over. `site`: as in [`Entry`](vsrun_model::watch::Entry).
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

/// Something else is going to be where memory from `start` to `end` was. True: some of that was marked.
pub fn forget(start: u64, end: u64) -> bool {
    let mut any = false;
    for t in (0..world().threads.len).filter(|&t| is_over(t)) {
        let [low, high] = range(t);
        if low < end && start < high {
            each_page_of_others(t, watch::forget);
            any = true;
        }
    }
    any
}
