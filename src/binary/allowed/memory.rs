//! The bytes of a loaded file, at the addresses of the running process.

use std::ops::Range;

use goblin::elf::program_header::PT_GNU_RELRO;

use super::super::elf::{ElfError, ElfFile, Load};

/// No program has more; a damaged file must not make us allocate more.
const MAX_MEMORY: u64 = 1 << 31;

/// A loaded segment.
struct Segment {
    start: u64,
    /// One past the last address, `.bss` included.
    end: u64,
    bytes: Vec<u8>,
    executable: bool,
    writable: bool,
}

/// What a file becomes in memory.
pub struct Memory {
    /// What is added to the file's addresses.
    pub bias: u64,
    segments: Vec<Segment>,
    /// Memory that is read-only once it is relocated.
    relro: Vec<Range<u64>>,
}

impl Memory {
    /// The segments of the file, as they lie in memory at `bias`.
    pub(crate) fn load(elf: &ElfFile, bias: u64) -> Result<Memory, ElfError> {
        let shifted = |(start, size): (u64, u64)| {
            let start = start.wrapping_add(bias);
            start..start.saturating_add(size)
        };
        let relro = elf.ranges(PT_GNU_RELRO).into_iter().map(shifted).collect();
        Ok(Memory { bias, segments: segments(elf, bias)?, relro })
    }

    fn segment(&self, address: u64) -> Option<&Segment> {
        self.segments.iter().find(|s| (s.start..s.end).contains(&address))
    }

    /// Whether the image is mapped at `address`.
    pub fn contains(&self, address: u64) -> bool {
        self.segment(address).is_some()
    }

    /// Whether code lies at `address`.
    pub fn is_code(&self, address: u64) -> bool {
        self.segment(address).is_some_and(|s| s.executable && address - s.start < s.bytes.len() as u64)
    }

    /// Whether what lies at `address` stays as it is once the program runs.
    pub fn is_constant(&self, address: u64) -> bool {
        self.segment(address).is_some_and(|s| !s.writable) || self.relro.iter().any(|r| r.contains(&address))
    }

    /// The bytes of the file from `address` to the end of its segment; empty where there are none.
    pub fn tail(&self, address: u64) -> &[u8] {
        let Some(segment) = self.segment(address) else { return &[] };
        usize::try_from(address - segment.start).ok().and_then(|at| segment.bytes.get(at..)).unwrap_or(&[])
    }

    /// One past the last byte of code of the segment at `address`.
    pub fn code_end(&self, address: u64) -> u64 {
        address.saturating_add(self.tail(address).len() as u64)
    }

    /// The word in the file at `address`, before relocation.
    pub fn u64_at(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.tail(address).get(..8)?.try_into().ok()?))
    }

    /// The 32-bit word in the file at `address`.
    pub fn u32_at(&self, address: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.tail(address).get(..4)?.try_into().ok()?))
    }

    /// Every place outside of code at which an aligned 64-bit word may be: its address and the bytes from there.
    pub fn data(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segments.iter().filter(|s| !s.executable).map(|s| (s.start, s.bytes.as_slice()))
    }

    /// Every stretch of code: its address and its bytes.
    pub fn code(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segments.iter().filter(|s| s.executable).map(|s| (s.start, s.bytes.as_slice()))
    }
}

fn segments(elf: &ElfFile, bias: u64) -> Result<Vec<Segment>, ElfError> {
    let loads = elf.loads();
    let total = loads.iter().fold(0u64, |sum, l| sum.saturating_add(l.filesz));
    if total > MAX_MEMORY || loads.len() > 1000 {
        return Err(ElfError::Corrupt("its segments are too large".to_string()));
    }
    let segment = |l: &Load| {
        let start = l.vaddr.wrapping_add(bias);
        Ok(Segment {
            start,
            end: start.saturating_add(l.memsz),
            bytes: elf.bytes(l.offset, l.filesz, "a segment")?,
            executable: l.executable,
            writable: l.writable,
        })
    };
    loads.iter().map(segment).collect()
}
