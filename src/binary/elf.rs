//! Reads the parts of an ELF file that vsrun needs, a part at a time, so that a damaged or huge file does no harm:
//! goblin decodes the structures, this file decides which bytes it sees.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::{fmt, io};

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::dynamic::{
    DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB,
};
use goblin::elf::header::{EM_X86_64, ET_DYN, ET_EXEC};
use goblin::elf::program_header::{PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, PT_TLS};
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS};
use goblin::elf::{Elf, ProgramHeader, SectionHeader};

const HEADER_SIZE: u64 = 64;
const PAGE: u64 = 4096;
/// No table of a sane file is larger; a damaged size must not make us allocate more.
const MAX_TABLE: u64 = 1 << 31;

/// How 64-bit little-endian structures are decoded.
pub(super) const CTX: Ctx = Ctx { container: Container::Big, le: Endian::Little };

/// Why a file is not an x86-64 ELF executable or library.
#[derive(Debug)]
pub(crate) enum ElfError {
    NotElf,
    Bits32,
    BigEndian,
    /// `e_machine`.
    Machine(u16),
    /// `e_type`.
    Type(u16),
    /// What is missing.
    Truncated(&'static str),
    /// What is wrong.
    Corrupt(String),
    Io(io::Error),
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not an ELF file"),
            ElfError::Bits32 => f.write_str("a 32-bit file"),
            ElfError::BigEndian => f.write_str("a big-endian file"),
            ElfError::Machine(machine) => write!(f, "for another machine ({})", machine_name(*machine)),
            ElfError::Type(kind) => write!(f, "neither executable nor shared object ({})", type_name(*kind)),
            ElfError::Truncated(what) => write!(f, "truncated: {what} lies beyond the end of the file"),
            ElfError::Corrupt(what) => write!(f, "corrupt: {what}"),
            ElfError::Io(e) => e.fmt(f),
        }
    }
}

impl From<gimli::Error> for ElfError {
    fn from(e: gimli::Error) -> Self {
        ElfError::Corrupt(e.to_string())
    }
}

impl From<io::Error> for ElfError {
    fn from(e: io::Error) -> Self {
        ElfError::Io(e)
    }
}

/// The name that `file` and `uname` use for a machine.
pub(super) fn machine_name(machine: u16) -> String {
    use goblin::elf::header as h;
    let name = match machine {
        h::EM_386 => "i386",
        h::EM_AARCH64 => "aarch64",
        h::EM_ARM => "arm",
        h::EM_PPC64 => "powerpc64",
        h::EM_S390 => "s390",
        h::EM_MIPS => "mips",
        h::EM_SPARCV9 => "sparc64",
        h::EM_RISCV => "riscv",
        258 => "loongarch", // not in goblin
        other => return format!("e_machine {other}"),
    };
    name.to_string()
}

/// What kind of ELF file a type number means.
pub(super) fn type_name(kind: u16) -> String {
    match kind {
        1 => "an object file: link it first".to_string(),
        4 => "a core dump".to_string(),
        other => format!("e_type {other}"),
    }
}

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub vaddr: u64,
    pub memsz: u64,
    pub offset: u64,
    pub filesz: u64,
    pub executable: bool,
    pub writable: bool,
}

impl Load {
    /// The file range that the kernel maps: whole pages.
    fn file_pages(&self) -> Range<u64> {
        floor(self.offset)..ceil(self.offset.saturating_add(self.filesz))
    }

    /// The load bias, if a mapping at `start` shows this segment from file offset `offset`.
    pub fn bias_of(&self, start: u64, offset: u64) -> Option<u64> {
        let pages = self.file_pages();
        pages.contains(&offset).then(|| start.wrapping_sub(floor(self.vaddr)).wrapping_sub(offset - pages.start))
    }
}

/// `address` rounded down to its page.
pub(crate) fn floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// `address` rounded up to a page.
pub(crate) fn ceil(address: u64) -> u64 {
    floor(address.saturating_add(PAGE - 1))
}

/// What the dynamic loader is told by a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dynamic {
    pub needed: Vec<String>,
    pub soname: Option<String>,
    pub rpath: Option<String>,
    pub runpath: Option<String>,
    pub pie: bool,
}

/// An open ELF file whose header and program headers are sound.
pub(crate) struct ElfFile {
    file: File,
    len: u64,
    header: goblin::elf::Header,
    segments: Vec<ProgramHeader>,
}

/// The file, its length and its header.
fn begin(path: &Path) -> Result<(File, u64, goblin::elf::Header), ElfError> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    let start = read(&file, 0, HEADER_SIZE.min(len))?;
    check_ident(&start)?;
    let header = Elf::parse_header(&start).map_err(|e| ElfError::Corrupt(e.to_string()))?;
    Ok((file, len, header))
}

impl ElfFile {
    /// Opens the file and checks it as the kernel would: header, program headers, segments inside of the file.
    pub fn open(path: &Path) -> Result<ElfFile, ElfError> {
        let (file, len, header) = begin(path)?;
        check_header(&header)?;
        let size = u64::from(header.e_phnum) * u64::from(header.e_phentsize);
        let table = table(&file, len, header.e_phoff, size, "the program header table")?;
        let segments = ProgramHeader::parse(&table, 0, usize::from(header.e_phnum), CTX)
            .map_err(|e| ElfError::Corrupt(e.to_string()))?;
        check_segments(&segments, len)?;
        Ok(ElfFile { file, len, header, segments })
    }

    /// Opens a file of which only sections are asked, such as what was stripped from another, or an object file: it need not be
    /// fit to be loaded.
    pub fn open_sections(path: &Path) -> Result<ElfFile, ElfError> {
        let (file, len, header) = begin(path)?;
        if header.e_machine != EM_X86_64 {
            return Err(ElfError::Machine(header.e_machine));
        }
        Ok(ElfFile { file, len, header, segments: Vec::new() })
    }

    /// `PT_INTERP`: the dynamic loader the file asks for.
    pub fn interpreter(&self) -> Result<Option<Vec<u8>>, ElfError> {
        let Some(segment) = self.segments.iter().find(|s| s.p_type == PT_INTERP) else { return Ok(None) };
        let mut name = self.bytes(segment.p_offset, segment.p_filesz.min(PAGE), "the name of the loader")?;
        name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
        if name.is_empty() {
            return Err(ElfError::Corrupt("the name of the loader is empty".to_string()));
        }
        Ok(Some(name))
    }

    /// Whether an address to start at is given (shared libraries mostly have none).
    pub fn has_entry(&self) -> bool {
        self.header.e_entry != 0
    }

    /// `e_entry`: where the program starts.
    pub fn entry(&self) -> u64 {
        self.header.e_entry
    }

    /// The memory that program headers of type `kind` describe: first address and size.
    pub fn ranges(&self, kind: u32) -> Vec<(u64, u64)> {
        self.segments.iter().filter(|s| s.p_type == kind).map(|s| (s.p_vaddr, s.p_memsz)).collect()
    }

    /// The thread-local storage that it needs: alignment and size.
    pub fn thread_local(&self) -> Vec<(u64, u64)> {
        self.segments.iter().filter(|s| s.p_type == PT_TLS).map(|s| (s.p_align, s.p_memsz)).collect()
    }

    /// Whether the file is position independent: a shared library or PIE.
    pub fn is_dyn(&self) -> bool {
        self.header.e_type == ET_DYN
    }

    /// The loadable segments, in the order of the file.
    pub fn loads(&self) -> Vec<Load> {
        let load = |s: &ProgramHeader| Load {
            vaddr: s.p_vaddr,
            memsz: s.p_memsz,
            offset: s.p_offset,
            filesz: s.p_filesz,
            executable: s.p_flags & PF_X != 0,
            writable: s.p_flags & PF_W != 0,
        };
        self.segments.iter().filter(|s| s.p_type == PT_LOAD).map(load).collect()
    }

    /// The largest alignment of a loadable segment.
    pub fn loads_align(&self) -> u64 {
        self.segments.iter().filter(|s| s.p_type == PT_LOAD).map(|s| s.p_align).max().unwrap_or(0)
    }

    /// Relocations change code, or what is said of that cannot be read.
    pub fn has_text_relocations(&self) -> bool {
        const DT_TEXTREL: u64 = 22;
        const DT_FLAGS: u64 = 30;
        const DF_TEXTREL: u64 = 4;
        let says = |(tag, value): &(u64, u64)| *tag == DT_TEXTREL || *tag == DT_FLAGS && value & DF_TEXTREL != 0;
        self.dynamic_entries().map_or(true, |entries| entries.iter().flatten().any(says))
    }

    /// What stands in the dynamic section, by tag.
    fn dynamic_entries(&self) -> Result<Option<Vec<(u64, u64)>>, ElfError> {
        let Some(segment) = self.segments.iter().find(|s| s.p_type == PT_DYNAMIC) else { return Ok(None) };
        let bytes = self.bytes(segment.p_offset, segment.p_filesz, "the dynamic section")?;
        let word = |at: &[u8]| u64::from_le_bytes(at.try_into().unwrap_or_default());
        let entries = bytes.chunks_exact(16).map(|e| (word(&e[..8]), word(&e[8..])));
        Ok(Some(entries.take_while(|(tag, _)| *tag != DT_NULL).collect()))
    }

    /// The dynamic section, or None if there is none.
    pub fn dynamic(&self) -> Result<Option<Dynamic>, ElfError> {
        let Some(entries) = self.dynamic_entries()? else { return Ok(None) };
        let strings = self.dynamic_strings(&entries)?;
        let mut dynamic = Dynamic::default();
        for (tag, value) in entries {
            match tag {
                DT_NEEDED => dynamic.needed.push(string_at(&strings, value)?),
                DT_SONAME => dynamic.soname = Some(string_at(&strings, value)?),
                DT_RPATH => dynamic.rpath = Some(string_at(&strings, value)?),
                DT_RUNPATH => dynamic.runpath = Some(string_at(&strings, value)?),
                DT_FLAGS_1 => dynamic.pie = value & DF_1_PIE != 0,
                _ => {}
            }
        }
        Ok(Some(dynamic))
    }

    fn dynamic_strings(&self, entries: &[(u64, u64)]) -> Result<Vec<u8>, ElfError> {
        let value = |wanted| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let (Some(address), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else { return Ok(Vec::new()) };
        let inside = |l: &Load| address >= l.vaddr && address - l.vaddr < l.filesz;
        let load = self.loads().into_iter().find(inside);
        let load = load.ok_or_else(|| ElfError::Corrupt("the dynamic strings lie in no segment".to_string()))?;
        self.bytes(load.offset + (address - load.vaddr), size, "the dynamic string table")
    }

    /// The section headers; none if the file was stripped of them.
    pub fn sections(&self) -> Result<Vec<SectionHeader>, ElfError> {
        if self.header.e_shoff == 0 || self.header.e_shentsize != 64 {
            return Ok(Vec::new());
        }
        let what = "the section header table";
        let corrupt = |e: goblin::error::Error| ElfError::Corrupt(e.to_string());
        let mut count = u64::from(self.header.e_shnum);
        if count == 0 {
            // More sections than the field can hold: their number is the size of section 0.
            let first = self.bytes(self.header.e_shoff, 64, what)?;
            count = SectionHeader::parse_from(&first, 0, 1, CTX).map_err(corrupt)?[0].sh_size;
        }
        let bytes = self.bytes(self.header.e_shoff, count.saturating_mul(64), what)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        SectionHeader::parse_from(&bytes, 0, bytes.len() / 64, CTX).map_err(corrupt)
    }

    /// The header of the section of that name, if the file has its content.
    pub fn section(&self, name: &[u8]) -> Option<SectionHeader> {
        let sections = self.sections().ok()?;
        let names = sections.get(usize::from(self.header.e_shstrndx))?;
        let names = self.bytes(names.sh_offset, names.sh_size, "the names of sections").ok()?;
        let is_called = |section: &SectionHeader| {
            let called = names.get(section.sh_name..).unwrap_or_default();
            section.sh_type != SHT_NOBITS && called.split(|b| *b == 0).next() == Some(name)
        };
        sections.into_iter().find(is_called)
    }

    /// The content of the section of that name, decompressed if need be; empty if there is none.
    ///
    /// # Errors
    /// It lies outside of the file, is larger than `most` bytes, or is compressed in a way that is not known.
    pub fn content(&self, name: &[u8], most: u64) -> Result<Vec<u8>, ElfError> {
        const COMPRESSED: u64 = SHF_COMPRESSED as u64;
        const HEAD: u64 = 24;
        const ZLIB: u32 = 1;
        const ZSTD: u32 = 2;
        let Some(section) = self.section(name) else { return Ok(Vec::new()) };
        let too_much = |size: u64| ElfError::Corrupt(format!("a section of {size} bytes"));
        if section.sh_size > most {
            return Err(too_much(section.sh_size));
        }
        let bytes = self.bytes(section.sh_offset, section.sh_size, "a section")?;
        if section.sh_flags & COMPRESSED == 0 {
            return Ok(bytes);
        }
        // Elf64_Chdr: type, reserved, size, alignment.
        let (head, packed) =
            bytes.split_at_checked(HEAD as usize).ok_or(ElfError::Truncated("a compressed section"))?;
        let kind = u32::from_le_bytes(head[..4].try_into().unwrap_or_default());
        let size = u64::from_le_bytes(head[8..16].try_into().unwrap_or_default());
        if size > most {
            return Err(too_much(size));
        }
        let unpacked = match kind {
            ZLIB => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, size as usize).ok(),
            ZSTD => unpack_zstd(packed, size),
            _ => None,
        };
        let unpacked = unpacked.filter(|bytes| bytes.len() as u64 == size);
        unpacked.ok_or_else(|| ElfError::Corrupt(format!("a section compressed by method {kind}")))
    }

    /// The CRC of the whole file that `.gnu_debuglink` has of it.
    pub fn crc(&self) -> io::Result<u32> {
        const CHUNK: u64 = 1 << 16;
        let (mut crc, mut at) = (!0, 0);
        while at < self.len {
            let bytes = read(&self.file, at, CHUNK.min(self.len - at))?;
            crc = bytes.iter().fold(crc, |crc, byte| CRC[usize::from(crc as u8 ^ byte)] ^ crc >> 8);
            at += CHUNK;
        }
        Ok(!crc)
    }

    /// The GNU build-id, in hexadecimal.
    pub fn build_id(&self) -> Option<String> {
        let notes = self.segments.iter().filter(|s| s.p_type == PT_NOTE);
        notes.filter_map(|s| self.bytes(s.p_offset, s.p_filesz, "a note").ok()).find_map(|b| find_build_id(&b))
    }

    /// `size` bytes at `offset`; an error if the file is too short or that is too much.
    pub fn bytes(&self, offset: u64, size: u64, what: &'static str) -> Result<Vec<u8>, ElfError> {
        table(&self.file, self.len, offset, size, what)
    }
}

/// CRC-32 (IEEE 802.3), reflected, a byte at a time.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ crc >> 1 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn unpack_zstd(packed: &[u8], size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
    decoder.take(size).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn check_ident(start: &[u8]) -> Result<(), ElfError> {
    if !start.starts_with(b"\x7fELF") {
        return Err(ElfError::NotElf);
    }
    if start.len() < 6 {
        return Err(ElfError::Truncated("the ELF header"));
    }
    match (start[4], start[5]) {
        (_, 2) => Err(ElfError::BigEndian),
        (1, _) => Err(ElfError::Bits32),
        (2, 1) if (start.len() as u64) < HEADER_SIZE => Err(ElfError::Truncated("the ELF header")),
        (2, 1) => Ok(()),
        (class, data) => Err(ElfError::Corrupt(format!("ELF class {class}, data encoding {data}"))),
    }
}

fn check_header(header: &goblin::elf::Header) -> Result<(), ElfError> {
    if header.e_machine != EM_X86_64 {
        return Err(ElfError::Machine(header.e_machine));
    }
    if header.e_type != ET_EXEC && header.e_type != ET_DYN {
        return Err(ElfError::Type(header.e_type));
    }
    if header.e_phnum == 0 || header.e_phentsize != 56 {
        return Err(ElfError::Corrupt("it has no usable program headers".to_string()));
    }
    Ok(())
}

fn check_segments(segments: &[ProgramHeader], len: u64) -> Result<(), ElfError> {
    for segment in segments.iter().filter(|s| matches!(s.p_type, PT_LOAD | PT_INTERP | PT_DYNAMIC)) {
        let end = segment.p_offset.checked_add(segment.p_filesz);
        if end.is_none_or(|end| end > len) {
            return Err(ElfError::Truncated("a segment"));
        }
        if segment.p_type == PT_LOAD && segment.p_filesz > segment.p_memsz {
            return Err(ElfError::Corrupt("a segment is larger in the file than in memory".to_string()));
        }
    }
    if !segments.iter().any(|s| s.p_type == PT_LOAD) {
        return Err(ElfError::Corrupt("it has no segment to load".to_string()));
    }
    Ok(())
}

fn read(file: &File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn table(file: &File, len: u64, offset: u64, size: u64, what: &'static str) -> Result<Vec<u8>, ElfError> {
    if offset.checked_add(size).is_none_or(|end| end > len) {
        return Err(ElfError::Truncated(what));
    }
    if size > MAX_TABLE {
        return Err(ElfError::Corrupt(format!("{what} has {size} bytes")));
    }
    Ok(read(file, offset, size)?)
}

/// The string that starts at `offset`. Names that are not UTF-8 do not occur in practice; they are kept readable.
fn string_at(strings: &[u8], offset: u64) -> Result<String, ElfError> {
    let tail = usize::try_from(offset).ok().and_then(|offset| strings.get(offset..));
    let tail = tail.ok_or_else(|| ElfError::Corrupt("a name lies outside of the string table".to_string()))?;
    let end = tail.iter().position(|b| *b == 0).unwrap_or(tail.len());
    Ok(String::from_utf8_lossy(&tail[..end]).into_owned())
}

/// The build-id among notes: records of three words (name size, content size, type), name and content padded to 4.
fn find_build_id(mut notes: &[u8]) -> Option<String> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let word = |i: usize| notes.get(4 * i..4 * i + 4).map(|b| u32::from_le_bytes(b.try_into().unwrap_or_default()));
        let (name_size, size, kind) = (word(0)? as usize, word(1)? as usize, word(2)?);
        let content = 12 + name_size.next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && notes.get(12..12 + name_size)? == b"GNU\0" {
            return Some(notes.get(content..content + size)?.iter().map(|b| format!("{b:02x}")).collect());
        }
        notes = notes.get(content + size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn reads_a_program() {
        let dir = TempDir::new();
        let elf = ElfFile::open(&dir.program("p", &["-Wl,-rpath,$ORIGIN/lib"])).unwrap();
        assert!(elf.interpreter().unwrap().unwrap().starts_with(b"/lib64/ld-linux"));
        assert!(elf.is_dyn() && elf.has_entry());
        assert!(elf.loads().iter().any(|l| l.executable));
        let dynamic = elf.dynamic().unwrap().unwrap();
        assert_eq!(dynamic.needed, ["libc.so.6"]);
        assert!(dynamic.pie && dynamic.soname.is_none());
        assert_eq!(dynamic.runpath.or(dynamic.rpath).as_deref(), Some("$ORIGIN/lib"));
        assert!(elf.sections().unwrap().len() > 10);
    }

    #[test]
    fn every_truncation_is_noticed_and_none_panics() {
        let dir = TempDir::new();
        let program = dir.program("p", &[]);
        let whole = std::fs::read(&program).unwrap();
        let end = ElfFile::open(&program).unwrap().loads().iter().map(|l| l.offset + l.filesz).max().unwrap() as usize;
        for len in (0..200).chain((200..end).step_by(97)) {
            let part = dir.file("part", &whole[..len], 0o755);
            match ElfFile::open(&part) {
                Err(ElfError::NotElf) => assert!(len < 4),
                Err(ElfError::Truncated(_)) => assert!(len >= 4),
                other => panic!("{len}: {:?}", other.err()),
            }
        }
    }

    #[test]
    fn damaged_bytes_do_not_panic() {
        let dir = TempDir::new();
        let whole = std::fs::read(dir.program("p", &[])).unwrap();
        for at in 0..2000 {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            if let Ok(elf) = ElfFile::open(&dir.file("damaged", &bytes, 0o755)) {
                let _ = (elf.interpreter(), elf.dynamic(), elf.sections(), elf.build_id(), elf.loads());
            }
        }
    }
}
