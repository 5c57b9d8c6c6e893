//! What the unwinder reads from the files that are mapped.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::program_header::{PF_X, PT_LOAD};
use goblin::elf::section_header::SHT_NOBITS;
use goblin::elf::{Elf, ProgramHeader, SectionHeader};

use super::maps::Mapping;

const PAGE: u64 = 4096;

/// A loadable segment of a file.
#[derive(Clone, Copy, Debug)]
struct Load {
    offset: u64,
    size: u64,
    vaddr: u64,
    executable: bool,
}

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
        let ctx = Ctx { container: Container::Big, le: Endian::Little };
        let file = File::open(path).ok()?;
        let header = Elf::parse_header(&read(&file, 0, 64)?).ok()?;
        let table = read(&file, header.e_phoff, u64::from(header.e_phnum) * u64::from(header.e_phentsize))?;
        let segments = ProgramHeader::parse(&table, 0, usize::from(header.e_phnum), ctx).ok()?;
        let table = read(&file, header.e_shoff, u64::from(header.e_shnum) * u64::from(header.e_shentsize))?;
        let sections = SectionHeader::parse_from(&table, 0, usize::from(header.e_shnum), ctx).ok()?;
        let eh_frame = find_section(&file, &sections, usize::from(header.e_shstrndx), b".eh_frame")?;
        let mut module = Module {
            loads: segments.iter().filter(|s| s.p_type == PT_LOAD).map(load).collect(),
            section: read(&file, eh_frame.sh_offset, eh_frame.sh_size)?,
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
        let holds = |l: &&Load| l.executable && (l.offset & !(PAGE - 1)..l.offset + l.size).contains(&offset);
        let load = self.loads.iter().find(holds)?;
        let in_file = offset.wrapping_sub(load.offset).wrapping_add(load.vaddr);
        Some(address.wrapping_sub(in_file))
    }
}

fn load(segment: &ProgramHeader) -> Load {
    Load {
        offset: segment.p_offset,
        size: segment.p_filesz,
        vaddr: segment.p_vaddr,
        executable: segment.p_flags & PF_X != 0,
    }
}

fn find_section(file: &File, sections: &[SectionHeader], names: usize, wanted: &[u8]) -> Option<SectionHeader> {
    let names = sections.get(names)?;
    let names = read(file, names.sh_offset, names.sh_size)?;
    let is_wanted = |section: &&SectionHeader| {
        let name = names.get(section.sh_name..).unwrap_or_default();
        section.sh_type != SHT_NOBITS && name.split(|b| *b == 0).next() == Some(wanted)
    };
    sections.iter().find(is_wanted).cloned()
}

/// None also if the file is not that long: a damaged size must not make us allocate.
fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    if offset.checked_add(size)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tracee::testing::TempDir;
    use std::fs;

    #[test]
    fn damaged_files_are_not_believed() {
        let dir = TempDir::new();
        let exe = dir.compile("int main(void){return 0;}", &[]);
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
