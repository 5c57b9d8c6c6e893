//! The time-stamp counter: it counts nanoseconds of the virtual clock, the same in every execution.
//!
//! NOTE [Traps] The kernel is asked (PR_SET_TSC) to let `rdtsc` and `rdtscp` fault in every process of a world. Such a
//! fault arrives as a SIGSEGV of the shim's own handler, which reads the virtual clock instead and goes on behind
//! the instruction. So SIGSEGV always has a handler in the kernel, whatever the program's own disposition is: any other
//! SIGSEGV is handed to the program's handler, or the default action is put in place and the instruction faults once more.
//! The setting outlives exec, but the loader reads the counter before the shim is there: exec takes it back.

use vsrun_model::counter::decode;

use super::end;
use super::local::{fiber, local, model, world, Spin};
use crate::sys::errno::*;
use crate::sys::{context as reg, load, raw, store};

const PR_TSC_ENABLE: u64 = 1;
const PR_TSC_SIGSEGV: u64 = 2;
/// si_code of a general protection fault, and the number of that trap in a context.
const SI_KERNEL: i32 = 0x80;
const GENERAL_PROTECTION: u64 = 13;

/// Lets the counter's instructions fault from now on, in this process and those that it forks.
pub fn arm() {
    if raw!(libc::SYS_prctl, libc::PR_SET_TSC, PR_TSC_SIGSEGV) < 0 {
        end::bug(b"the time-stamp counter could not be made to trap (PR_SET_TSC)");
    }
}

/// A program is about to be executed, and its loader reads the counter; [`arm`] is for when that fails. A program that
/// itself asked for faults gets them there, as it does natively.
pub fn before_exec() {
    if !fiber().tsc_faults {
        raw!(libc::SYS_prctl, libc::PR_SET_TSC, PR_TSC_ENABLE);
    }
}

/// prctl about the counter, which each thread has for itself. `None`: it is about something else.
pub fn control(option: i32, value: u64) -> Option<i64> {
    match option {
        libc::PR_GET_TSC => {
            let mode = if fiber().tsc_faults { PR_TSC_SIGSEGV } else { PR_TSC_ENABLE };
            store(value, mode as u32);
        }
        libc::PR_SET_TSC if !(PR_TSC_ENABLE..=PR_TSC_SIGSEGV).contains(&value) => return Some(EINVAL),
        libc::PR_SET_TSC => fiber().tsc_faults = value == PR_TSC_SIGSEGV,
        _ => return None,
    }
    Some(0)
}

/// A SIGSEGV of this process. True: it was a reading of the counter, and the program goes on behind it.
pub fn emulated(info: u64, context: u64) -> bool {
    if !is_general_protection(info, context) || fiber().tsc_faults {
        return false;
    }
    let rip: u64 = load(context + reg::RIP);
    let Some(reading) = decode(|at| Some(load(rip + at))) else { return false };
    let now = read_counter(rip);
    store(context + reg::RAX, now & 0xffff_ffff);
    store(context + reg::RDX, now >> 32);
    if reading.tells_processor {
        // As getcpu says: processor 0 of node 0.
        store(context + reg::RCX, 0u64);
    }
    store(context + reg::RIP, rip + reading.len);
    true
}

/// A SIGSEGV of an instruction that is not allowed, not of an address.
pub fn is_general_protection(info: u64, context: u64) -> bool {
    load::<i32>(info + 8) == SI_KERNEL && load::<u64>(context + reg::TRAPNO) == GENERAL_PROTECTION
}

/// Reads the counter, ns, for the instruction at `site`.
fn read_counter(site: u64) -> u64 {
    let spin = &mut local().spin;
    if spin.site != site {
        *spin = Spin { site, readings: 0, since: world().now };
    }
    spin.readings = spin.readings.saturating_add(1);
    model().read_counter(spin.readings, spin.since)
}
