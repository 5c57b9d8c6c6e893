//! What the dynamic loader is told by a file: relocated words, imported and exported symbols, functions to call at the
//! start and at the end. Read from the program headers alone, so that a file without sections will do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use goblin::elf::program_header::PT_DYNAMIC;
use goblin::elf::section_header::SHT_DYNSYM;
use goblin::elf::{dynamic as d, reloc as r};

use super::super::elf::{ElfError, ElfFile};
use super::memory::Memory;

const SYMBOL_SIZE: u64 = 24;
const RELA_SIZE: u64 = 24;
/// More symbols or relocations than any file has.
const MAX_ENTRIES: u64 = 1 << 24;
const DT_RELR: u64 = 36;
const DT_RELRSZ: u64 = 35;
const STT_OBJECT: u8 = 1;
const STT_TLS: u8 = 6;
const STT_IFUNC: u8 = 10;

/// What a word of memory holds once the loader has been at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// An address of the image.
    Address(u64),
    /// The address of a symbol, which another file may define, and an addend.
    Symbol(String, u64),
    /// What the function at this address gives back: the address of a function (STT_GNU_IFUNC).
    Chosen(u64),
}

/// The dynamic section and what it leads to.
#[derive(Debug, Default)]
pub struct Dynamic {
    /// Relocated words by address.
    pub words: BTreeMap<u64, Word>,
    /// Words that only the loader writes: slots of the global offset table.
    pub slots: BTreeSet<u64>,
    /// Names of symbols that are not defined here.
    pub imports: BTreeSet<String>,
    /// Those of them that are variables.
    pub variables: BTreeSet<String>,
    /// Defined symbols that other files can use.
    pub exports: BTreeMap<String, u64>,
    /// Exported symbols whose address is chosen at run time by the function that they name.
    pub chosen: BTreeSet<String>,
    /// Functions called before `main`.
    pub init: Vec<u64>,
    /// Functions called at exit.
    pub fini: Vec<u64>,
    /// Where the addresses of those functions lie.
    pub arrays: Vec<Range<u64>>,
    /// Where the symbol table lies.
    pub symbols: Range<u64>,
}

struct Reader<'a> {
    image: &'a Memory,
    /// Tag and value; the first of a tag counts.
    entries: BTreeMap<u64, u64>,
}

/// Reads the dynamic section of `elf`, whose segments are in `image` already.
pub fn read(elf: &ElfFile, image: &Memory) -> Result<Dynamic, ElfError> {
    let Some((start, size)) = elf.ranges(PT_DYNAMIC).first().copied() else { return Ok(Dynamic::default()) };
    let bytes = image.tail(start.wrapping_add(image.bias));
    let bytes = &bytes[..bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX))];
    let mut entries = BTreeMap::new();
    for entry in bytes.chunks_exact(16) {
        let word = |at: &[u8]| u64::from_le_bytes(at.try_into().unwrap_or_default());
        let (tag, value) = (word(&entry[..8]), word(&entry[8..]));
        if tag == d::DT_NULL {
            break;
        }
        entries.entry(tag).or_insert(value);
    }
    let reader = Reader { image, entries };
    let mut dynamic = Dynamic::default();
    reader.symbols(elf, &mut dynamic);
    reader.relocations(&mut dynamic);
    reader.functions(&mut dynamic);
    Ok(dynamic)
}

impl Reader<'_> {
    fn value(&self, tag: u64) -> Option<u64> {
        self.entries.get(&tag).copied()
    }

    fn address(&self, tag: u64) -> Option<u64> {
        Some(self.value(tag)?.wrapping_add(self.image.bias))
    }

    fn string(&self, offset: u64) -> Option<String> {
        let tail = self.image.tail(self.address(d::DT_STRTAB)?.wrapping_add(offset));
        let end = tail.iter().position(|b| *b == 0)?;
        Some(String::from_utf8_lossy(&tail[..end]).into_owned())
    }

    fn symbol(&self, index: u64) -> Option<RawSymbol> {
        let at = self.address(d::DT_SYMTAB)?.wrapping_add(index.wrapping_mul(SYMBOL_SIZE));
        let entry = self.image.tail(at).get(..SYMBOL_SIZE as usize)?;
        Some(RawSymbol {
            name: self.string(u64::from(u32::from_le_bytes(entry[..4].try_into().ok()?)))?,
            kind: entry[4] & 15,
            defined: entry[6..8] != [0, 0],
            value: u64::from_le_bytes(entry[8..16].try_into().ok()?),
        })
    }

    /// How many dynamic symbols there are: nothing says so directly.
    fn symbol_count(&self, elf: &ElfFile) -> u64 {
        let sections = elf.sections().unwrap_or_default();
        if let Some(section) = sections.iter().find(|s| s.sh_type == SHT_DYNSYM) {
            return section.sh_size / SYMBOL_SIZE;
        }
        if let Some(hash) = self.address(d::DT_HASH) {
            return u64::from(self.image.u32_at(hash.wrapping_add(4)).unwrap_or(0));
        }
        self.address(d::DT_GNU_HASH).and_then(|hash| self.gnu_hash_count(hash)).unwrap_or(0)
    }

    /// The GNU hash table: bucket count, first hashed symbol, size of the Bloom filter in words, shift; filter,
    /// buckets, chains. The last symbol ends the chain that starts last.
    fn gnu_hash_count(&self, hash: u64) -> Option<u64> {
        let word = |i: u64| self.image.u32_at(hash.wrapping_add(i.wrapping_mul(4))).map(u64::from);
        let (n_buckets, first, bloom) = (word(0)?, word(1)?, word(2)?);
        let buckets = 4 + 2 * bloom;
        let last = (0..n_buckets.min(MAX_ENTRIES)).map_while(|i| word(buckets + i)).max()?;
        if last < first {
            return Some(first);
        }
        let chains = buckets + n_buckets;
        let ends = |i: &u64| word(chains + i - first).is_none_or(|w| w & 1 != 0);
        (last..last.saturating_add(MAX_ENTRIES)).find(ends).map(|i| i + 1)
    }

    fn symbols(&self, elf: &ElfFile, dynamic: &mut Dynamic) {
        let count = self.symbol_count(elf).min(MAX_ENTRIES);
        if let Some(start) = self.address(d::DT_SYMTAB) {
            dynamic.symbols = start..start.saturating_add(count * SYMBOL_SIZE);
        }
        for symbol in (1..count).map_while(|i| self.symbol(i)) {
            if symbol.name.is_empty() || symbol.kind == STT_TLS {
                continue;
            }
            if !symbol.defined {
                if symbol.kind == STT_OBJECT {
                    dynamic.variables.insert(symbol.name.clone());
                }
                dynamic.imports.insert(symbol.name);
                continue;
            }
            if symbol.kind == STT_IFUNC {
                dynamic.chosen.insert(symbol.name.clone());
            }
            dynamic.exports.insert(symbol.name, symbol.value.wrapping_add(self.image.bias));
        }
    }

    fn relocations(&self, dynamic: &mut Dynamic) {
        for (table, size) in [(d::DT_RELA, d::DT_RELASZ), (d::DT_JMPREL, d::DT_PLTRELSZ)] {
            let (Some(start), Some(size)) = (self.address(table), self.value(size)) else { continue };
            let bytes = self.image.tail(start);
            let bytes = &bytes[..bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX))];
            for entry in bytes.chunks_exact(RELA_SIZE as usize) {
                let word = |i: usize| u64::from_le_bytes(entry[8 * i..8 * i + 8].try_into().unwrap_or_default());
                self.relocation(word(0).wrapping_add(self.image.bias), word(1), word(2), dynamic);
            }
        }
        self.packed_relocations(dynamic);
    }

    fn relocation(&self, at: u64, info: u64, addend: u64, dynamic: &mut Dynamic) {
        let (index, kind) = (info >> 32, info as u32);
        let word = match kind {
            r::R_X86_64_RELATIVE => Some(Word::Address(addend.wrapping_add(self.image.bias))),
            r::R_X86_64_IRELATIVE => Some(Word::Chosen(addend.wrapping_add(self.image.bias))),
            r::R_X86_64_64 => self.symbol_word(index, addend),
            r::R_X86_64_GLOB_DAT | r::R_X86_64_JUMP_SLOT => self.symbol_word(index, 0),
            _ => None,
        };
        if matches!(kind, r::R_X86_64_GLOB_DAT | r::R_X86_64_JUMP_SLOT | r::R_X86_64_IRELATIVE) {
            dynamic.slots.insert(at);
        }
        if let Some(word) = word {
            dynamic.words.insert(at, word);
        }
    }

    fn symbol_word(&self, index: u64, addend: u64) -> Option<Word> {
        let symbol = self.symbol(index)?;
        if symbol.name.is_empty() {
            return Some(Word::Address(symbol.value.wrapping_add(addend).wrapping_add(self.image.bias)));
        }
        Some(Word::Symbol(symbol.name, addend))
    }

    /// DT_RELR: an even word is the address of a relative relocation, an odd one a bit set of the 63 words that follow.
    fn packed_relocations(&self, dynamic: &mut Dynamic) {
        let (Some(start), Some(size)) = (self.address(DT_RELR), self.value(DT_RELRSZ)) else { return };
        let mut next = 0u64;
        for i in 0..(size / 8).min(MAX_ENTRIES) {
            let Some(entry) = self.image.u64_at(start.wrapping_add(8 * i)) else { return };
            if entry & 1 == 0 {
                let at = entry.wrapping_add(self.image.bias);
                self.relative(at, dynamic);
                next = at.wrapping_add(8);
                continue;
            }
            for bit in (1..64u64).filter(|bit| entry >> bit & 1 != 0) {
                self.relative(next.wrapping_add(8 * (bit - 1)), dynamic);
            }
            next = next.wrapping_add(8 * 63);
        }
    }

    /// A relative relocation whose addend lies in the word itself.
    fn relative(&self, at: u64, dynamic: &mut Dynamic) {
        if let Some(addend) = self.image.u64_at(at) {
            dynamic.words.insert(at, Word::Address(addend.wrapping_add(self.image.bias)));
        }
    }

    fn functions(&self, dynamic: &mut Dynamic) {
        let tables = [
            (d::DT_PREINIT_ARRAY, d::DT_PREINIT_ARRAYSZ, true),
            (d::DT_INIT_ARRAY, d::DT_INIT_ARRAYSZ, true),
            (d::DT_FINI_ARRAY, d::DT_FINI_ARRAYSZ, false),
        ];
        for (table, size, before) in tables {
            let (Some(start), Some(size)) = (self.address(table), self.value(size)) else { continue };
            dynamic.arrays.push(start..start.saturating_add(size));
            let words = (0..(size / 8).min(MAX_ENTRIES)).map(|i| start.wrapping_add(8 * i));
            let targets: Vec<u64> = words
                .map_while(|at| match dynamic.words.get(&at) {
                    Some(Word::Address(target) | Word::Chosen(target)) => Some(Some(*target)),
                    Some(Word::Symbol(name, _)) => Some(dynamic.exports.get(name).copied()),
                    None => self.image.u64_at(at).map(Some),
                })
                .flatten()
                .filter(|target| *target != 0 && *target != u64::MAX)
                .collect();
            if before { &mut dynamic.init } else { &mut dynamic.fini }.extend(targets);
        }
        dynamic.init.extend(self.address(d::DT_INIT));
        dynamic.fini.extend(self.address(d::DT_FINI));
    }
}

/// A dynamic symbol.
struct RawSymbol {
    name: String,
    kind: u8,
    defined: bool,
    /// Without load bias.
    value: u64,
}
