//! The instruction `cpuid`, which may fault by now (ARCH_SET_CPUID): of the program's own that is `gate::cpuid`'s, and the shim asks the processor.

use core::arch::x86_64::__cpuid_count;

use super::raw;

/// Options of arch_prctl.
pub const ARCH_GET_CPUID: i32 = 0x1011;
#[allow(missing_docs)]
pub const ARCH_SET_CPUID: i32 = 0x1012;

/// Lets the instruction fault from now on, in this process and those that it forks. False: processor or kernel cannot.
pub fn arm() -> bool {
    raw!(libc::SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0
}

/// What the processor says: eax, ebx, ecx, edx.
pub fn ask(leaf: u32, subleaf: u32) -> [u32; 4] {
    let faults = raw!(libc::SYS_arch_prctl, ARCH_GET_CPUID, 0) == 0;
    if faults {
        raw!(libc::SYS_arch_prctl, ARCH_SET_CPUID, 1);
    }
    let all = __cpuid_count(leaf, subleaf);
    if faults {
        arm();
    }
    [all.eax, all.ebx, all.ecx, all.edx]
}
