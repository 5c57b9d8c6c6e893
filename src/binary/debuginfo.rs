//! Debug information (DWARF): which file has that of a program or library, and what stands in it.
//!
//! It may be in the file itself, or in another one: by build-id below `/usr/lib/debug` or where debuginfod keeps what it has fetched
//! (nothing is fetched here), or by the name in `.gnu_debuglink`, which a CRC confirms, beside the file, in `.debug` there, or below
//! `/usr/lib/debug`. Parts of it may be in further files: `.dwo`, or all of these in a `.dwp` (split DWARF, DWARF 5 section 7.3.2), and
//! what several files have in common in the one that `.gnu_debugaltlink` names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{DwarfPackage, EndianArcSlice, LittleEndian, SectionId};

use super::elf::{ElfError, ElfFile};

/// Bytes that a section may have, decompressed.
const MOST: u64 = 1 << 29;
/// Entries may be nested as deep; what is deeper is damaged, and would have to be followed by recursion.
const DEEPEST: isize = 512;

/// A section, or a part of one.
pub(super) type Bytes = EndianArcSlice<LittleEndian>;
/// The debug information of a file.
pub(super) type Dwarf = gimli::Dwarf<Bytes>;

/// Where files with what was stripped from others are.
pub(super) struct Stores {
    /// Where distributions put them: `.build-id/ab/cdef.debug` and `usr/bin/prog.debug` below it.
    pub debug: PathBuf,
    /// Where debuginfod's client keeps what it has fetched: `abcdef/debuginfo` below it.
    pub fetched: Option<PathBuf>,
}

impl Stores {
    /// Those of this system and user.
    pub fn of_system() -> Stores {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        let fetched = absolute("DEBUGINFOD_CACHE_PATH").or_else(|| Some(cache()?.join("debuginfod_client")));
        Stores { debug: "/usr/lib/debug".into(), fetched }
    }

    /// The first file with what was stripped from the ELF file at `path` of which `is_it` holds.
    pub fn find(&self, path: &Path, elf: &ElfFile, is_it: impl Fn(&ElfFile) -> bool) -> Option<(PathBuf, ElfFile)> {
        let open = |path: PathBuf| {
            let file = is_regular(&path).then(|| ElfFile::open_sections(&path).ok()).flatten();
            file.map(|file| (path, file))
        };
        let by_id = elf.build_id().map(|id| self.by_id(&id)).unwrap_or_default();
        if let Some(found) = by_id.into_iter().filter_map(open).find(|(_, file)| is_it(file)) {
            return Some(found);
        }
        let (name, crc) = debug_link(elf)?;
        let named = self.by_name(path, &name).into_iter().filter_map(open);
        named.into_iter().find(|(_, file)| is_it(file) && file.crc().is_ok_and(|is| is == crc))
    }

    fn by_id(&self, id: &str) -> Vec<PathBuf> {
        let Some((first, rest)) = id.split_at_checked(2) else { return Vec::new() };
        let debug = self.debug.join(".build-id").join(first).join(format!("{rest}.debug"));
        let fetched = self.fetched.as_ref().map(|cache| cache.join(id).join("debuginfo"));
        [debug].into_iter().chain(fetched).collect()
    }

    fn by_name(&self, path: &Path, name: &Path) -> Vec<PathBuf> {
        let path = path.canonicalize().unwrap_or(path.to_path_buf());
        let dir = path.parent().unwrap_or(Path::new("/"));
        let below = self.debug.join(dir.strip_prefix("/").unwrap_or(dir));
        let all = [dir.join(name), dir.join(".debug").join(name), below.join(name)];
        all.into_iter().filter(|found| *found != path).collect()
    }
}

/// A device or FIFO must not be opened: that could block or act.
pub(super) fn is_regular(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file())
}

/// `.gnu_debuglink`: a file name, zeros up to a multiple of four bytes, a CRC.
fn debug_link(elf: &ElfFile) -> Option<(PathBuf, u32)> {
    let link = elf.content(b".gnu_debuglink", 1 << 16).ok()?;
    let length = link.iter().position(|byte| *byte == 0)?;
    let crc = link.get((length + 1).next_multiple_of(4)..)?.get(..4)?;
    let name = Path::new(OsStr::from_bytes(&link[..length]));
    let plain = name.file_name() == Some(name.as_os_str());
    plain.then_some((name.to_path_buf(), u32::from_le_bytes(crc.try_into().ok()?)))
}

/// `.gnu_debugaltlink`: a path, relative to that of the file itself, a zero, a build-id.
fn common_file(path: &Path, elf: &ElfFile, stores: &Stores) -> Option<ElfFile> {
    let link = elf.content(b".gnu_debugaltlink", 1 << 16).ok()?;
    let length = link.iter().position(|byte| *byte == 0)?;
    let name = Path::new(OsStr::from_bytes(&link[..length]));
    let id: String = link[length + 1..].iter().map(|byte| format!("{byte:02x}")).collect();
    let named = path.parent().unwrap_or(Path::new("/")).join(name);
    let all = [named].into_iter().chain(stores.by_id(&id));
    all.filter(|path| is_regular(path)).find_map(|path| ElfFile::open_sections(&path).ok())
}

/// Whether a file has debug information.
pub(super) fn has_dwarf(elf: &ElfFile) -> bool {
    elf.section(b".debug_info").is_some()
}

/// The debug information of the ELF file at `path`, and the file that has it; `None`: there is none.
///
/// # Errors
/// It is damaged, or too large.
pub(super) fn load(path: &Path, stores: &Stores) -> Result<Option<(PathBuf, Dwarf)>, ElfError> {
    let elf = ElfFile::open(path)?;
    let found = if has_dwarf(&elf) { Some((path.to_path_buf(), elf)) } else { stores.find(path, &elf, has_dwarf) };
    let Some((path, elf)) = found else { return Ok(None) };
    let needed = |id: SectionId| !matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists);
    let mut dwarf = Dwarf::load(|id| section(&elf, Some(id.name()).filter(|_| needed(id))))?;
    if let Some(common) = common_file(&path, &elf, stores) {
        dwarf.load_sup(|id| section(&common, Some(id.name()).filter(|_| needed(id))))?;
    }
    check(&dwarf)?;
    Ok(Some((path, dwarf)))
}

/// A section by its name; empty if there is none.
fn section(elf: &ElfFile, name: Option<&str>) -> Result<Bytes, ElfError> {
    let content = match name {
        Some(name) => elf.content(name.as_bytes(), MOST)?,
        None => Vec::new(),
    };
    Ok(Bytes::new(Arc::from(content), LittleEndian))
}

/// Nothing is nested so deep that following it would need more stack than there is.
fn check(dwarf: &Dwarf) -> Result<(), ElfError> {
    let corrupt = || ElfError::Corrupt("debug information is nested too deep".to_string());
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let abbreviations = dwarf.abbreviations(&header)?;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        while !entries.is_empty() {
            if entries.next_depth() > DEEPEST {
                return Err(corrupt());
            }
            if let Some(abbreviation) = entries.read_abbreviation()? {
                entries.skip_attributes(abbreviation.attributes())?;
            }
        }
    }
    Ok(())
}

/// Split debug information of a file.
#[derive(Default)]
pub(super) struct Package(Option<DwarfPackage<Bytes>>);

impl Package {
    /// `prog.dwp` beside `prog`, if it is there.
    pub fn beside(path: &Path) -> Package {
        let mut name = path.as_os_str().to_os_string();
        name.push(".dwp");
        let open = |path: &Path| ElfFile::open_sections(path).ok().filter(|_| is_regular(path));
        let load = |elf: ElfFile| {
            let empty = Bytes::new(Arc::from(Vec::new()), LittleEndian);
            DwarfPackage::load(|id| section(&elf, id.dwo_name()), empty)
        };
        Package(open(Path::new(&name)).and_then(|elf| load(elf).inspect_err(|e| log::debug!("{e}")).ok()))
    }

    /// Whether there is such a file.
    pub fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// The part with that number of what `parent` has: from the package, or from the file at `path`.
    pub fn part(&self, id: gimli::DwoId, path: Option<&Path>, parent: &Dwarf) -> Option<Arc<Dwarf>> {
        let packed = self.0.as_ref().and_then(|package| package.find_cu(id, parent).ok().flatten());
        let part = packed.or_else(|| {
            let elf = ElfFile::open_sections(path.filter(|path| is_regular(path))?).ok()?;
            let mut part = Dwarf::load(|id| section(&elf, id.dwo_name())).ok()?;
            let header = part.units().next().ok().flatten()?;
            let is_it = part.unit(header).is_ok_and(|unit| unit.dwo_id == Some(id));
            part.make_dwo(parent);
            is_it.then_some(part)
        });
        part.filter(|part| check(part).is_ok()).map(Arc::new)
    }
}
