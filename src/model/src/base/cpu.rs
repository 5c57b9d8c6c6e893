//! The processor that programs see with `--cpu baseline`: one of x86-64-v2 (SSE4.2, no AVX), the same on all machines that have that.
//!
//! NOTE \[Baseline\] What libc takes of its own is told to its loader ([`TUNABLES`]): it asks the processor before anything of vsrun is there. What asks
//! later, by `cpuid`, faults where the kernel can have it fault (ARCH_SET_CPUID), and gets [`answer`]. Where it cannot, it sees the machine's.

/// What libc's loader is told (GLIBC_TUNABLES): which features it is not to use, in the words of all its versions, and sizes that it would have from the
/// caches. Features that only Intel's or AMD's processors are said to have are said to be there, or not to be, on both.
pub const TUNABLES: &[u8] = b"glibc.cpu.hwcaps=-AVX,-AVX2,-AVX_Usable,-AVX2_Usable,-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD,-AVX512F_Usable,\
-AVX512DQ_Usable,-FMA,-FMA4,-FMA_Usable,-FMA4_Usable,-F16C,-BMI1,-BMI2,-LZCNT,-MOVBE,-ERMS,-FSRM,-RTM,-Prefer_ERMS,-Prefer_FSRM,\
-AVX_Fast_Unaligned_Load,-Prefer_No_VZEROUPPER,-Prefer_No_AVX512,-Fast_Rep_String,-Fast_Copy_Backward,-Slow_BSF,-Slow_SSE4_2,\
-Prefer_PMINUB_for_stringop,Fast_Unaligned_Load,Fast_Unaligned_Copy:glibc.cpu.x86_data_cache_size=32768:glibc.cpu.x86_shared_cache_size=1048576:\
glibc.cpu.x86_non_temporal_threshold=786432:glibc.cpu.x86_rep_movsb_threshold=2048:glibc.cpu.x86_rep_stosb_threshold=2048";

/// Bytes of the `cpuid` instruction there, with prefixes; `None`: it is another one. `byte` gives bytes by their offset, and is asked for none behind
/// the end.
pub fn decode(byte: impl Fn(u64) -> Option<u8>) -> Option<u64> {
    let at = super::counter::opcode(&byte)?;
    (byte(at)? == 0x0f && byte(at + 1)? == 0xa2).then_some(at + 2)
}

/// The largest leaf of the basic ones, and of the extended ones.
const BASIC: u32 = 7;
const EXTENDED: u32 = 0x8000_0008;
/// Family 6, model 26, stepping 5.
const SIGNATURE: u32 = 0x0001_06a5;
/// Bytes of a line of the caches, as leaf 1 has them: in units of 8, in bits 8 to 15.
const LINE: u32 = 8 << 8;
/// SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT. No OSXSAVE and AVX, no RDRAND.
const LEAF1_C: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23;
/// FPU to SSE2, without what concerns several threads of a core, debug stores and thermal control.
const LEAF1_D: u32 = 0x0783_fbff;
/// LAHF and SAHF in 64 bits; SYSCALL, no execution, 64 bits.
const EXTENDED1: [u32; 2] = [1, 1 << 11 | 1 << 20 | 1 << 29];
const NAME: &[u8; 48] = b"x86-64-v2, as vsrun --cpu baseline has it\0\0\0\0\0\0\0";

/// A cache: its type and level, its ways, its sets. Lines have 64 bytes, and nobody shares it.
const fn cache(kind: u32, level: u32, ways: u32, sets: u32) -> [u32; 4] {
    [kind | level << 5 | 1 << 8, (ways - 1) << 22 | 63, sets - 1, 0]
}

/// What `cpuid` answers: eax, ebx, ecx, edx.
pub fn answer(leaf: u32, subleaf: u32) -> [u32; 4] {
    match (leaf, subleaf) {
        // "GenuineIntel": programs know what to ask such a processor.
        (0, _) => [BASIC, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
        (1, _) => [SIGNATURE, LINE, LEAF1_C, LEAF1_D],
        // Leaf 4 has it.
        (2, _) => [0x0000_ff01, 0, 0, 0],
        (4, 0) => cache(1, 1, 8, 64),
        (4, 1) => cache(2, 1, 4, 128),
        (4, 2) => cache(3, 2, 8, 512),
        (4, 3) => cache(3, 3, 16, 8192),
        (0x8000_0000, _) => [EXTENDED, 0, 0, 0],
        (0x8000_0001, _) => [0, 0, EXTENDED1[0], EXTENDED1[1]],
        (0x8000_0002..=0x8000_0004, _) => {
            let at = 16 * (leaf - 0x8000_0002) as usize;
            let word = |n: usize| u32::from_le_bytes(core::array::from_fn(|byte| NAME[at + 4 * n + byte]));
            [word(0), word(1), word(2), word(3)]
        }
        // 256 KiB, 8 ways, lines of 64 bytes.
        (0x8000_0006, _) => [0, 0, 256 << 16 | 6 << 12 | 64, 0],
        // Addresses: 48 bits.
        (0x8000_0008, _) => [48 << 8 | 48, 0, 0, 0],
        _ => [0; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> Option<u64> {
        decode(|at| text.get(at as usize).copied())
    }

    #[test]
    fn it_is_recognized() {
        assert_eq!((of(b"\x0f\xa2\x90"), of(b"\x48\x0f\xa2"), of(b"\x66\x2e\x0f\xa2")), (Some(2), Some(3), Some(4)));
        // rdtsc; rdtscp; syscall; cut off; prefixes without end.
        for text in [&b"\x0f\x31"[..], b"\x0f\x01\xf9", b"\x0f\x05", b"\x0f", b"\x66", &[0x66; 20]] {
            assert_eq!(of(text), None, "{text:x?}");
        }
    }

    #[test]
    fn what_it_has_is_x86_64_v2_and_no_more() {
        let [basic, b, c, d] = answer(0, 0);
        assert_eq!([b, d, c].map(u32::to_le_bytes).concat(), b"GenuineIntel");
        // System V ABI for x86-64, table 3.1: cx16, lahf, popcnt, sse3, sse4.1, sse4.2, ssse3; cmov, cx8, fpu, fxsr, mmx, sse, sse2.
        let [_, _, c, d] = answer(1, 0);
        assert_eq!([13, 23, 0, 19, 20, 9].map(|bit| c >> bit & 1), [1; 6]);
        assert_eq!([15, 8, 0, 24, 23, 25, 26].map(|bit| d >> bit & 1), [1; 7]);
        let [_, _, c1, d1] = answer(0x8000_0001, 0);
        assert_eq!((c1 & 1, d1 >> 29 & 1, d1 >> 11 & 1), (1, 1, 1));
        // FMA, MOVBE, OSXSAVE, AVX, F16C, RDRAND; LZCNT; AVX2, BMI, ERMS, RDSEED and all else.
        assert_eq!([12, 22, 27, 28, 29, 30].map(|bit| c >> bit & 1), [0; 6]);
        assert_eq!((c1 >> 5 & 1, answer(7, 0), answer(0xd, 0), answer(0x4000_0000, 0)), (0, [0; 4], [0; 4], [0; 4]));
        assert!(basic >= 7 && answer(0x8000_0000, 0)[0] >= 0x8000_0008);
    }

    #[test]
    fn caches_and_name_read_as_programs_read_them() {
        // Ways, partitions, line, sets: each one more than what stands there (Intel SDM 2A, CPUID, leaf 4).
        let size = |[_, b, c, _]: [u32; 4]| ((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * (c + 1);
        let sizes: [u32; 4] = core::array::from_fn(|n| size(answer(4, n as u32)));
        assert_eq!(sizes, [32 << 10, 32 << 10, 256 << 10, 8 << 20]);
        assert_eq!(answer(4, 4)[0] & 31, 0, "that is the last one");
        let mut name = [0; 48];
        for (n, word) in (0x8000_0002..=0x8000_0004u32).flat_map(|leaf| answer(leaf, 0)).enumerate() {
            name[4 * n..4 * n + 4].copy_from_slice(&word.to_le_bytes());
        }
        assert_eq!(&name, NAME);
    }
}
