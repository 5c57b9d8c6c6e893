//! One loaded file as the analysis sees it: its bytes, functions, data objects and relocated words. All addresses are
//! those of the running process: the file's plus the load bias.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::path::Path;

use goblin::elf::program_header::PT_GNU_EH_FRAME;

use super::super::demangle::demangle;
use super::super::elf::{ElfError, ElfFile};
use super::super::symbols::ElfModule;
use super::dynamic::{self, Dynamic, Word};
use super::extents::Extents;
use super::memory::Memory;
use crate::base::text::escape;

/// Objects this near to the place from which an indexed address is computed may be meant by it, in bytes: compilers
/// fold `a[i - 1]` into an address outside of `a`.
pub const NEIGHBOURHOOD: u64 = 256;
/// A loaded file.
pub struct Image {
    /// File name without directories, fit to print.
    pub name: String,
    /// Where the program starts.
    pub entry: u64,
    /// Position independent: every absolute address it holds has a relocation.
    pub relocatable: bool,
    /// The functions.
    pub extents: Extents,
    /// What the dynamic loader is told.
    pub dynamic: Dynamic,
    memory: Memory,
    /// Data objects by address, first and one past the last.
    objects: Vec<(u64, u64)>,
}

/// The bytes are reached like fields of the image.
impl Deref for Image {
    type Target = Memory;
    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl Image {
    /// Reads the file, as it lies in memory at `bias`.
    pub(crate) fn load(path: &Path, bias: u64) -> Result<Image, ElfError> {
        let elf = ElfFile::open(path)?;
        let name = escape(path.file_name().unwrap_or(path.as_os_str()));
        let mut image = Image {
            name,
            entry: elf.entry().wrapping_add(bias),
            relocatable: elf.is_dyn(),
            extents: Extents::default(),
            dynamic: Dynamic::default(),
            memory: Memory::load(&elf, bias)?,
            objects: Vec::new(),
        };
        image.dynamic = dynamic::read(&elf, &image.memory)?;
        let module = ElfModule::open(path);
        let symbols = module.as_ref().map(ElfModule::symbols);
        if let Some(symbols) = symbols {
            image.objects =
                symbols.objects.iter().map(|o| (o.start.wrapping_add(bias), o.end.wrapping_add(bias))).collect();
            image.objects.sort_unstable();
        }
        let frames = elf.ranges(PT_GNU_EH_FRAME).first().map(|r| r.0.wrapping_add(bias));
        image.extents = Extents::read(&image.memory, symbols, frames);
        Ok(image)
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
