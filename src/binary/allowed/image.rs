//! One loaded file as the analysis sees it: its bytes, functions, data objects and relocated words. All addresses are
//! those of the running process: the file's plus the load bias.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use goblin::elf::program_header::{PT_GNU_EH_FRAME, PT_GNU_RELRO};

use super::super::elf::{ElfError, ElfFile};
use super::super::symbols::{demangle, ElfModule};
use super::super::text::escape;
use super::dynamic::{self, Dynamic, Word};
use super::extents::Extents;

/// Objects this near to the place from which an indexed address is computed may be meant by it, in bytes: compilers
/// fold `a[i - 1]` into an address outside of `a`.
pub const NEIGHBOURHOOD: u64 = 256;
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

/// A loaded file.
pub struct Image {
    /// File name without directories, fit to print.
    pub name: String,
    /// What is added to the file's addresses.
    pub bias: u64,
    /// Where the program starts.
    pub entry: u64,
    /// Position independent: every absolute address it holds has a relocation.
    pub relocatable: bool,
    /// The functions.
    pub extents: Extents,
    /// What the dynamic loader is told.
    pub dynamic: Dynamic,
    segments: Vec<Segment>,
    /// Data objects by address, first and one past the last.
    objects: Vec<(u64, u64)>,
    /// Memory that is read-only once it is relocated.
    relro: Vec<Range<u64>>,
}

impl Image {
    /// Reads the file, as it lies in memory at `bias`.
    pub fn load(path: &Path, bias: u64) -> Result<Image, ElfError> {
        let elf = ElfFile::open(path)?;
        let name = escape(path.file_name().unwrap_or(path.as_os_str()));
        let mut image = Image {
            name,
            bias,
            entry: elf.entry().wrapping_add(bias),
            relocatable: elf.is_dyn(),
            extents: Extents::default(),
            dynamic: Dynamic::default(),
            segments: segments(&elf, bias)?,
            objects: Vec::new(),
            relro: Vec::new(),
        };
        let shifted = |(start, size): (u64, u64)| {
            let start = start.wrapping_add(bias);
            start..start.saturating_add(size)
        };
        image.relro = elf.ranges(PT_GNU_RELRO).into_iter().map(shifted).collect();
        image.dynamic = dynamic::read(&elf, &image)?;
        let module = ElfModule::open(path);
        let symbols = module.as_ref().map(ElfModule::symbols);
        if let Some(symbols) = symbols {
            image.objects =
                symbols.objects.iter().map(|o| (o.start.wrapping_add(bias), o.end.wrapping_add(bias))).collect();
            image.objects.sort_unstable();
        }
        let frames = elf.ranges(PT_GNU_EH_FRAME).first().map(|r| r.0.wrapping_add(bias));
        image.extents = Extents::read(&image, symbols, frames);
        Ok(image)
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

    /// The address in the 64-bit word at `address`, once relocated; None where it is that of a symbol.
    pub fn pointer_at(&self, address: u64) -> Option<u64> {
        match self.dynamic.words.get(&address) {
            Some(Word::Address(target)) => Some(*target),
            Some(_) => None,
            None if self.relocatable => None,
            None => self.u64_at(address),
        }
    }

    /// Every place outside of code at which an aligned 64-bit word may be: its address and the bytes from there.
    pub fn data(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segments.iter().filter(|s| !s.executable).map(|s| (s.start, s.bytes.as_slice()))
    }

    /// Every stretch of code: its address and its bytes.
    pub fn code(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.segments.iter().filter(|s| s.executable).map(|s| (s.start, s.bytes.as_slice()))
    }

    /// The data object around `address`.
    fn object(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.objects.partition_point(|o| o.0 <= address);
        self.objects[..after].last().copied().filter(|o| address < o.1)
    }

    /// Whether both addresses lie in one data object.
    pub fn same_object(&self, a: u64, b: u64) -> bool {
        self.object(a).is_some_and(|o| (o.0..o.1).contains(&b))
    }

    /// Where an object of `size` bytes may lie whose address is computed from `anchor` and an index: the data objects
    /// that can hold two of its size, at or near the anchor. Empty: nothing is known.
    pub fn arrays_near(&self, anchor: u64, size: u64) -> Vec<Range<u64>> {
        let (low, high) = (anchor.saturating_sub(NEIGHBOURHOOD), anchor.saturating_add(NEIGHBOURHOOD));
        let until = self.objects.partition_point(|o| o.0 < high);
        // Objects do not overlap but for aliases: before the first that ends below nothing reaches up here.
        let near = self.objects[..until].iter().rev().take_while(|o| o.1 > low || o.0 > low);
        near.filter(|o| o.1 > low && o.1 - o.0 >= size.saturating_mul(2)).map(|o| o.0..o.1).collect()
    }

    /// What people call the function at `address`.
    pub fn function_name(&self, address: u64) -> String {
        match self.extents.at(address).and_then(|f| f.name) {
            Some(name) => escape(demangle(&name)),
            None => format!("{}+{:#x}", self.name, address.wrapping_sub(self.bias)),
        }
    }

    /// The addresses of the symbols that the image defines for others.
    pub fn exports(&self) -> &BTreeMap<String, u64> {
        &self.dynamic.exports
    }
}

fn segments(elf: &ElfFile, bias: u64) -> Result<Vec<Segment>, ElfError> {
    let loads = elf.loads();
    let total = loads.iter().fold(0u64, |sum, l| sum.saturating_add(l.filesz));
    if total > MAX_MEMORY || loads.len() > 1000 {
        return Err(ElfError::Corrupt("its segments are too large".to_string()));
    }
    let segment = |l: &super::super::elf::Load| {
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
