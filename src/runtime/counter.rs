//! Readings of the time-stamp counter, as a tracer sees them: faults that the library in the program answers.

use super::memory::ProcessMemory;
use super::tracee::Stopped;

/// True if what `stopped` is stopped by is the fault of an instruction that reads the counter.
pub fn is_reading(stopped: &Stopped) -> bool {
    const SI_KERNEL: i32 = 0x80;
    let fault = stopped.siginfo().is_ok_and(|info| info.si_signo == libc::SIGSEGV && info.si_code == SI_KERNEL);
    if !fault {
        return false;
    }
    let (Ok(regs), Ok(memory)) = (stopped.regs(), ProcessMemory::open(stopped.pid())) else { return false };
    let byte = |at: u64| {
        let mut one = [0];
        memory.read(regs.rip.wrapping_add(at), &mut one).ok().map(|()| one[0])
    };
    vsrun_model::counter::decode(byte).is_some()
}
