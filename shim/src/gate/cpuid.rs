//! `cpuid` with `--cpu baseline`: the program sees the same processor on all machines, see NOTE [Baseline] in `vsrun_model::cpu`. Exec takes the setting
//! back by itself, so that the loader can ask; it asks only what it has been told not to use.

use vsrun_model::cpu::{answer, decode};

use super::{arena, tsc};
use crate::sys::cpuid::{self, ARCH_GET_CPUID, ARCH_SET_CPUID};
use crate::sys::errno::ENODEV;
use crate::sys::{context as reg, load, store};

/// Lets the instruction fault from now on, where that is asked for and can be.
pub fn arm() {
    if arena().control.baseline != 0 {
        cpuid::arm();
    }
}

/// arch_prctl with that is about it, and not the machine's.
pub fn is_about(option: i32) -> bool {
    arena().control.baseline != 0 && matches!(option, ARCH_GET_CPUID | ARCH_SET_CPUID)
}

/// What it gives: as on a machine that cannot.
pub fn control(option: i32) -> i64 {
    if option == ARCH_GET_CPUID {
        1
    } else {
        ENODEV
    }
}

/// A SIGSEGV of this process. True: it was that instruction, and the program goes on behind it.
pub fn emulated(info: u64, context: u64) -> bool {
    if arena().control.baseline == 0 || !tsc::is_general_protection(info, context) {
        return false;
    }
    let rip: u64 = load(context + reg::RIP);
    let Some(len) = decode(|at| Some(load(rip + at))) else { return false };
    let [leaf, subleaf] = [reg::RAX, reg::RCX].map(|at| load::<u64>(context + at) as u32);
    for (at, value) in [reg::RAX, reg::RBX, reg::RCX, reg::RDX].into_iter().zip(answer(leaf, subleaf)) {
        store(context + at, u64::from(value));
    }
    store(context + reg::RIP, rip + len);
    true
}
