//! The memory map of a process (`/proc/PID/maps`) and what lies at an address of it.

use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vsrun_model::watch::LEFT_OUT;

use super::elf;
use super::symbols::{ElfModule, SymbolCache};
use crate::base::text::escape;
use crate::finding::PlaceView;

/// One line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// As printed, such as `r-xp`.
    pub perms: String,
    /// Where in the file it starts, in bytes.
    pub offset: u64,
    /// The number of what is behind it, 0 for memory of the process's own.
    pub inode: u64,
    /// A file, a name in brackets such as `[heap]`, or None for anonymous memory.
    pub path: Option<PathBuf>,
}

impl Mapping {
    /// Takes the content of `/proc/PID/maps`, by address. Lines that are not understood are left out.
    pub fn parse_all(maps: &[u8]) -> Vec<Mapping> {
        let mut mappings: Vec<Mapping> = maps.split(|b| *b == b'\n').filter_map(Mapping::parse).collect();
        mappings.sort_by_key(|m| m.start);
        mappings
    }

    /// Reads one line; None if it is not of the expected form.
    fn parse(line: &[u8]) -> Option<Mapping> {
        // start-end perms offset device inode, then blanks and the path, which may have blanks itself.
        let mut fields = line.splitn(6, |b| *b == b' ');
        let mut text = || fields.next().and_then(|f| std::str::from_utf8(f).ok());
        let (start, end) = text()?.split_once('-')?;
        let perms = text()?.to_string();
        let offset = hex(text()?)?;
        let (_device, inode) = (text()?, text()?.parse().ok()?);
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        let path = (!path.is_empty()).then(|| unescape(path));
        Some(Mapping { start: hex(start)?, end: hex(end)?, perms, offset, inode, path })
    }

    /// Whether `address` lies inside.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether it may be executed.
    pub fn is_executable(&self) -> bool {
        self.perms.as_bytes().get(2) == Some(&b'x')
    }

    /// The file behind it, if there is one: not for `[heap]` and its like.
    pub fn file(&self) -> Option<&Path> {
        self.path.as_deref().filter(|p| p.is_absolute())
    }
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The kernel writes a line end inside of a path as `\012`, and nothing else in this way.
fn unescape(path: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => {
                out.push(b'\n');
                rest = after;
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&out))
}

/// An ELF file that is loaded in a process.
#[derive(Clone, Debug)]
pub struct Module {
    /// The file.
    pub elf: Arc<ElfModule>,
    /// What is added to the addresses of the file; 0 for programs that are not position independent.
    pub bias: u64,
    /// From its first to its last page, `.bss` included.
    pub range: Range<u64>,
}

impl Module {
    fn new(elf: Arc<ElfModule>, bias: u64) -> Module {
        let low = elf.loads.iter().map(|l| elf::floor(l.vaddr)).min().unwrap_or(0);
        let high = elf.loads.iter().map(|l| elf::ceil(l.vaddr.saturating_add(l.memsz))).max().unwrap_or(0);
        let range = bias.wrapping_add(low)..bias.wrapping_add(high);
        Module { elf, bias, range }
    }

    /// The name of the file, without directories.
    pub fn name(&self) -> String {
        file_name(self.elf.path())
    }

    /// Source lines and members of variables are told of it. Not of libc and the loader: few have debug information of these, few look into them, and
    /// it takes longer to read than all of a small program's.
    fn is_told(&self) -> bool {
        let name = self.name();
        !LEFT_OUT.iter().any(|start| name.starts_with(start))
    }
}

/// Where an address lies. Printed as `function+0x1c (module)`, or `module+0x1234` if the module does not name the
/// place, or `[heap]+0x20`, or `0x1234 (not mapped)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address itself.
    pub address: u64,
    /// File name of the module or of the mapped file, or `[heap]`, `[stack]`, `anonymous memory`, `not mapped`.
    pub module: String,
    /// The function, demangled.
    pub function: Option<String>,
    /// Bytes from the start of the function; without one: the module's own address (what addr2line takes), or bytes
    /// from the start of the mapping.
    pub offset: u64,
    /// It is a return address: function and line are those of the call before it.
    pub returns: bool,
}

/// The module name of addresses at which nothing is mapped.
const NOT_MAPPED: &str = "not mapped";

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Location { address, module, function, offset, .. } = self;
        match function {
            Some(function) => write!(f, "{}+{offset:#x} ({})", escape(function), escape(module)),
            None if module == NOT_MAPPED => write!(f, "{address:#x} ({NOT_MAPPED})"),
            None => write!(f, "{}+{offset:#x}", escape(module)),
        }
    }
}

/// The memory map of one process at one time.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    mappings: Vec<Mapping>,
    modules: Vec<Module>,
}

impl Modules {
    /// Takes the content of `/proc/PID/maps`. Lines that are not understood are left out; files that cannot be read
    /// (any more) are mappings without symbols.
    pub fn parse(maps: &[u8], cache: &mut SymbolCache) -> Modules {
        let mappings = Mapping::parse_all(maps);
        let mut modules: Vec<Module> = Vec::new();
        // A file that is loaded shows one of its executable segments executable; one that is only read does not.
        for mapping in mappings.iter().filter(|m| m.is_executable()) {
            let Some(elf) = mapping.file().and_then(|path| cache.get(path)) else { continue };
            let segments = elf.loads.iter().filter(|l| l.executable);
            let Some(bias) = segments.filter_map(|l| l.bias_of(mapping.start, mapping.offset)).next() else { continue };
            if !modules.iter().any(|m| m.bias == bias && m.elf.path() == elf.path()) {
                modules.push(Module::new(elf, bias));
            }
        }
        Modules { mappings, modules }
    }

    /// Reads the map of process `pid`, which should be stopped.
    ///
    /// # Errors
    /// Those of reading `/proc/PID/maps`: the process is gone, or not ours.
    pub fn of_process(pid: i32, cache: &mut SymbolCache) -> std::io::Result<Modules> {
        Ok(Modules::parse(&std::fs::read(format!("/proc/{pid}/maps"))?, cache))
    }

    /// All mappings, by address.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// All loaded ELF files, by the address of their code.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The mapping at `address`.
    pub fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|m| m.start <= address);
        self.mappings[..after].last().filter(|m| m.contains(address))
    }

    /// The module at `address`. Mappings of other files that lie in its gaps are not the module's.
    pub fn module(&self, address: u64) -> Option<&Module> {
        let module = self.modules.iter().find(|m| m.range.contains(&address))?;
        let mapping = self.mapping(address)?;
        mapping.file().is_none_or(|file| file == module.elf.path()).then_some(module)
    }

    /// Where `address` lies: meant for code, works for all.
    pub fn locate(&self, address: u64) -> Location {
        if let Some(module) = self.module(address) {
            let inside = address.wrapping_sub(module.bias);
            let found = module.elf.symbols().function(inside);
            let (function, offset) = found.map_or((None, inside), |(name, offset)| (Some(name), offset));
            return Location { address, module: module.name(), function, offset, returns: false };
        }
        let offset = self.mapping(address).map_or(address, |m| address - m.start);
        Location { address, module: self.region(address), function: None, offset, returns: false }
    }

    /// Like [`Modules::locate`] for a return address: the call, which may be the last instruction of its function,
    /// is what counts. The offset is still that of the return address.
    pub fn locate_return(&self, address: u64) -> Location {
        let call = self.locate(address.saturating_sub(1));
        Location { address, offset: call.offset + 1, returns: true, ..call }
    }

    /// A location as it is shown: with its source lines, if there is debug information.
    pub fn shown(&self, location: &Location) -> PlaceView {
        let address = location.address.wrapping_sub(location.returns.into());
        let module = self.module(address).filter(|m| m.is_told());
        let mut lines = module.map_or(Vec::new(), |m| m.elf.lines(address.wrapping_sub(m.bias)));
        if let (Some(last), Some(function)) = (lines.last_mut(), &location.function) {
            if last.function.is_empty() {
                last.function.clone_from(function);
            }
        }
        PlaceView { lines, ..location.to_string().into() }
    }

    /// The instruction at `address` as it is shown.
    pub fn place(&self, address: u64) -> PlaceView {
        self.shown(&self.locate(address))
    }

    /// The global variable at `address`: `lock`, or `table+0x10` inside of one.
    pub fn object_name(&self, address: u64) -> Option<String> {
        let module = self.module(address)?;
        let (name, offset) = module.elf.symbols().object(address.wrapping_sub(module.bias))?;
        Some(if offset == 0 { name } else { format!("{name}+{offset:#x}") })
    }

    /// The same with the names of its members, if there is debug information: `bank[1].lock`.
    pub fn variable_name(&self, address: u64) -> Option<String> {
        let module = self.module(address)?;
        let inside = address.wrapping_sub(module.bias);
        let (name, offset) = module.elf.symbols().object(inside)?;
        let part = if module.is_told() { module.elf.part_of_variable(inside - offset, offset) } else { None };
        let (path, rest) = part.unwrap_or((String::new(), offset));
        Some(if rest == 0 { format!("{name}{path}") } else { format!("{name}{path}+{rest:#x}") })
    }

    /// The address and size of each global variable of that name in the modules loaded, by module.
    pub fn objects_named(&self, name: &str) -> Vec<(u64, u64)> {
        let of = |m: &Module| {
            let found = m.elf.symbols().objects_named(name).into_iter();
            found.map(|(start, size)| (m.bias.wrapping_add(start), size)).collect::<Vec<_>>()
        };
        self.modules.iter().flat_map(of).collect()
    }

    /// The same of each function.
    pub fn functions_named(&self, name: &str) -> Vec<(u64, u64)> {
        let of = |m: &Module| {
            let found = m.elf.symbols().functions_named(name).into_iter();
            found.map(|(start, size)| (m.bias.wrapping_add(start), size)).collect::<Vec<_>>()
        };
        self.modules.iter().flat_map(of).collect()
    }

    /// What kind of memory `address` is in: the file name of a module or of a mapped file, `[heap]`, `[stack]`,
    /// `anonymous memory`, `not mapped`.
    pub fn region(&self, address: u64) -> String {
        let Some(mapping) = self.mapping(address) else { return NOT_MAPPED.to_string() };
        match &mapping.path {
            Some(path) if path.is_absolute() => file_name(path),
            Some(name) => escape(name),
            None => self.module(address).map_or("anonymous memory".to_string(), Module::name),
        }
    }

    /// The best name for any address: that of a variable, else that of [`Modules::locate`].
    pub fn describe(&self, address: u64) -> String {
        self.object_name(address).unwrap_or_else(|| self.locate(address).to_string())
    }
}

/// The last component of a path as text.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "modules_tests.rs"]
mod tests;
