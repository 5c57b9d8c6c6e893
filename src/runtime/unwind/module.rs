//! What the unwinder reads from the files that are mapped.

use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};

use crate::binary::elf::{ElfFile, Load};
use crate::binary::Mapping;

/// The code that one unwind entry (FDE) is about, in the addresses of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where in the section the entry is.
    pub(super) entry: usize,
}

/// What of a file is needed to unwind its code.
#[derive(Debug)]
pub(super) struct Module {
    loads: Vec<Load>,
    /// The content of `.eh_frame`.
    section: Vec<u8>,
    pub(super) bases: BaseAddresses,
    /// invariant: sorted by `start`.
    covered: Vec<Covered>,
}

impl Module {
    /// None if the file cannot be read, is no 64-bit ELF file or has no `.eh_frame`.
    pub(super) fn open(path: &Path) -> Option<Module> {
        let elf = ElfFile::open(path).ok()?;
        let eh_frame = elf.section(b".eh_frame")?;
        let mut module = Module {
            loads: elf.loads(),
            section: elf.bytes(eh_frame.sh_offset, eh_frame.sh_size, ".eh_frame").ok()?,
            bases: BaseAddresses::default().set_eh_frame(eh_frame.sh_addr),
            covered: Vec::new(),
        };
        module.covered = module.index();
        Some(module)
    }

    pub(super) fn eh_frame(&self) -> EhFrame<EndianSlice<'_, LittleEndian>> {
        EhFrame::new(&self.section, LittleEndian)
    }

    /// What each entry covers, up to the first that is damaged.
    fn index(&self) -> Vec<Covered> {
        let eh_frame = self.eh_frame();
        let mut entries = eh_frame.entries(&self.bases);
        let mut covered = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(fde) = entry else { continue };
            let Ok(fde) = fde.parse(EhFrame::cie_from_offset) else { continue };
            covered.push(Covered { start: fde.initial_address(), end: fde.end_address(), entry: fde.offset() });
        }
        covered.sort_by_key(|c| c.start);
        covered
    }

    pub(super) fn covering(&self, address: u64) -> Option<Covered> {
        let after = self.covered.partition_point(|c| c.start <= address);
        let candidate = *self.covered.get(after.checked_sub(1)?)?;
        (address < candidate.end).then_some(candidate)
    }

    /// What must be added to the file's addresses to get those of the process, where `mapping` shows the file at
    /// `address`. A page of the file can be mapped by two segments; the one with code is meant.
    pub(super) fn bias(&self, mapping: &Mapping, address: u64) -> Option<u64> {
        let offset = address - mapping.start + mapping.offset;
        self.loads.iter().filter(|l| l.executable).find_map(|l| l.bias_of(address, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::fs;

    #[test]
    fn damaged_files_are_not_believed() {
        let dir = TempDir::new();
        let exe = dir.program("program", &[]);
        let good = fs::read(&exe).unwrap();
        assert!(Module::open(&exe).is_some_and(|m| !m.covered.is_empty()));
        let damaged = dir.0.join("damaged");
        for position in (0..64).chain(good.len() - 64 * 40..good.len()) {
            let mut bytes = good.clone();
            bytes[position] = 0xff;
            fs::write(&damaged, &bytes).unwrap();
            let _ = Module::open(&damaged);
        }
        for length in [0, 10, 64, 1000, good.len() / 2] {
            fs::write(&damaged, &good[..length]).unwrap();
            assert!(Module::open(&damaged).is_none());
        }
        assert!(Module::open(&dir.0).is_none());
    }
}
