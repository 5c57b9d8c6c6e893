//! The symbols of an ELF file: which function or data object an address of the file belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use goblin::elf::section_header::{SHF_TLS, SHT_DYNSYM, SHT_SYMTAB};
use goblin::elf::sym::{Sym, Symtab, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT};
use goblin::elf::SectionHeader;

use super::debuginfo::Stores;
use super::demangle::demangle;
use super::elf::{ElfError, ElfFile, Load, CTX};
use super::lines::Lines;
use crate::finding::LineView;

/// How many symbols before the nearest one may still reach over an address (they are nested then).
const MAX_NESTING: usize = 16;

/// A named range of a file's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Whether the file gives the size; else it is taken to reach up to the next symbol or the end of its section.
    pub sized: bool,
    /// As the file has it, without the symbol version.
    pub name: String,
}

/// What code and data a file names. Addresses are those of the file: without load bias.
#[derive(Debug, Default)]
pub struct SymbolTable {
    /// Sorted by start; one name for each start.
    pub(super) functions: Vec<Symbol>,
    pub(super) objects: Vec<Symbol>,
}

impl SymbolTable {
    /// The function at `address`, demangled, and how far into it the address lies.
    pub fn function(&self, address: u64) -> Option<(String, u64)> {
        lookup(&self.functions, address)
    }

    /// The data object at `address`, demangled, and how far into it the address lies.
    pub fn object(&self, address: u64) -> Option<(String, u64)> {
        lookup(&self.objects, address)
    }

    /// The address and size of each data object of that name, as the file has it or demangled.
    pub fn objects_named(&self, name: &str) -> Vec<(u64, u64)> {
        let named = |s: &&Symbol| s.name == name || demangle(&s.name) == name;
        self.objects.iter().filter(named).map(|s| (s.start, s.end - s.start)).collect()
    }

    /// The same of each function.
    pub fn functions_named(&self, name: &str) -> Vec<(u64, u64)> {
        let named = |s: &&Symbol| s.name == name || demangle(&s.name) == name;
        self.functions.iter().filter(named).map(|s| (s.start, s.end - s.start)).collect()
    }

    /// Whether the file names nothing at all (it is stripped).
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.objects.is_empty()
    }

    /// Takes what `elf` has in `.symtab` and `.dynsym`. A damaged table counts as none.
    fn load(elf: &ElfFile) -> SymbolTable {
        let mut functions = BTreeMap::new();
        let mut objects = BTreeMap::new();
        let sections = elf.sections().unwrap_or_default();
        for section in sections.iter().filter(|s| matches!(s.sh_type, SHT_SYMTAB | SHT_DYNSYM)) {
            if let Err(e) = read_table(elf, section, &sections, &mut functions, &mut objects) {
                log::debug!("symbol table ignored: {e}");
            }
        }
        SymbolTable { functions: functions.into_values().collect(), objects: objects.into_values().collect() }
    }
}

/// The nearest symbol that reaches over `address`. One without a size does not reach over another.
fn lookup(symbols: &[Symbol], address: u64) -> Option<(String, u64)> {
    let after = symbols.partition_point(|s| s.start <= address);
    let before = symbols[..after].iter().rev().take(MAX_NESTING).enumerate();
    let (_, found) = before.filter(|(i, s)| s.sized || *i == 0).find(|(_, s)| address < s.end)?;
    Some((demangle(&found.name), address - found.start))
}

fn read_table(
    elf: &ElfFile,
    section: &SectionHeader,
    sections: &[SectionHeader],
    functions: &mut BTreeMap<u64, Symbol>,
    objects: &mut BTreeMap<u64, Symbol>,
) -> Result<(), ElfError> {
    let corrupt = |e: goblin::error::Error| ElfError::Corrupt(e.to_string());
    let Some(link) = sections.get(section.sh_link as usize) else { return Ok(()) };
    let strings = elf.bytes(link.sh_offset, link.sh_size, "a string table")?;
    let bytes = elf.bytes(section.sh_offset, section.sh_size, "a symbol table")?;
    let count = bytes.len() / goblin::elf64::sym::SIZEOF_SYM;
    for sym in Symtab::parse(&bytes, 0, count, CTX).map_err(corrupt)?.iter() {
        let target = match sym.st_type() {
            STT_FUNC | STT_GNU_IFUNC => &mut *functions,
            STT_NOTYPE if in_code(&sym, sections) => &mut *functions,
            STT_OBJECT if sym.st_size != 0 => &mut *objects,
            _ => continue,
        };
        if let Some(symbol) = named_range(&sym, &strings, sections) {
            insert(target, symbol);
        }
    }
    Ok(())
}

/// Hand-written assembly often has neither type nor size.
fn in_code(sym: &Sym, sections: &[SectionHeader]) -> bool {
    sections.get(sym.st_shndx).is_some_and(SectionHeader::is_executable)
}

/// How much of a procedure linkage table one function has.
const PLT_ENTRY: u64 = 16;

/// The symbol as a range, unless it is undefined, absolute, thread-local or has no name.
fn named_range(sym: &Sym, strings: &[u8], sections: &[SectionHeader]) -> Option<Symbol> {
    let end = match (sym.st_shndx, sym.st_size) {
        (0, _) if sym.st_value == 0 || sym.st_type() != STT_FUNC => return None,
        // The address of a function of another module, as a program that is not position independent sees it.
        (0, _) => sym.st_value.saturating_add(PLT_ENTRY),
        (index, size) => reach(sym.st_value, size, sections.get(index)?)?,
    };
    let tail = strings.get(sym.st_name..)?;
    let name = std::str::from_utf8(&tail[..tail.iter().position(|b| *b == 0)?]).ok()?;
    let name = name.split('@').next().filter(|n| !n.is_empty())?;
    Some(Symbol { start: sym.st_value, end, sized: sym.st_size != 0, name: name.to_string() })
}

/// One past the last address of a symbol of `section`, if that is a part of memory that all threads share.
fn reach(start: u64, size: u64, section: &SectionHeader) -> Option<u64> {
    if !section.is_alloc() || section.sh_flags & u64::from(SHF_TLS) != 0 {
        return None;
    }
    Some(match size {
        0 => section.sh_addr.saturating_add(section.sh_size),
        size => start.saturating_add(size),
    })
}

/// Of several names for one address the one a person would use stays, whatever order they come in.
fn insert(symbols: &mut BTreeMap<u64, Symbol>, new: Symbol) {
    let rank = |s: &Symbol| {
        let underscores = s.name.bytes().take_while(|b| *b == b'_').count();
        let mangled_is_plain = if s.name.starts_with("_Z") { 0 } else { underscores };
        (mangled_is_plain, s.name.len(), s.name.clone())
    };
    let Some(old) = symbols.get_mut(&new.start) else {
        symbols.insert(new.start, new);
        return;
    };
    let (sized, end) = match (old.sized, new.sized) {
        (true, false) => (true, old.end),
        (false, true) => (true, new.end),
        (sized, _) => (sized, old.end.max(new.end)),
    };
    let name = if rank(&new) < rank(old) { new.name } else { std::mem::take(&mut old.name) };
    *old = Symbol { start: new.start, end, sized, name };
}

/// An ELF file as far as addresses are concerned. Symbols are read when first asked for.
#[derive(Debug)]
pub struct ElfModule {
    path: PathBuf,
    pub(super) loads: Vec<Load>,
    symbols: OnceLock<SymbolTable>,
    lines: OnceLock<Option<Mutex<Lines>>>,
}

impl ElfModule {
    pub(super) fn open(path: &Path) -> Option<ElfModule> {
        let loads = ElfFile::open(path).ok()?.loads();
        Some(ElfModule { path: path.to_path_buf(), loads, symbols: OnceLock::new(), lines: OnceLock::new() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The symbols of the file, or of its separate debug file if it is stripped and there is one.
    pub fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| self.with_symbols().map(|elf| SymbolTable::load(&elf)).unwrap_or_default())
    }

    /// The source lines of the instruction at `address` of the file, that of the innermost inlined function first; none without debug
    /// information.
    pub fn lines(&self, address: u64) -> Vec<LineView> {
        self.debug_information().map_or(Vec::new(), |mut lines| lines.at(address))
    }

    /// What lies `offset` bytes behind the start of the variable at `address` of the file: `[1].lock`, and bytes behind the start of
    /// that. `None`: nothing is known of its type.
    pub fn part_of_variable(&self, address: u64, offset: u64) -> Option<(String, u64)> {
        self.debug_information()?.part_of_variable(address, offset)
    }

    fn debug_information(&self) -> Option<MutexGuard<'_, Lines>> {
        let open = || Lines::open(&self.path, &Stores::of_system()).map(Mutex::new);
        let lines = self.lines.get_or_init(open).as_ref()?;
        Some(lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The file that has its symbols.
    pub(super) fn with_symbols(&self) -> Result<ElfFile, ElfError> {
        let elf = ElfFile::open(&self.path)?;
        let debug = if has_symtab(&elf) { None } else { debug_file(&self.path, &elf, &Stores::of_system()) };
        Ok(debug.unwrap_or(elf))
    }
}

fn has_symtab(elf: &ElfFile) -> bool {
    elf.sections().unwrap_or_default().iter().any(|s| s.sh_type == SHT_SYMTAB)
}

/// The file with the symbols that were stripped from `elf`, at `path`.
fn debug_file(path: &Path, elf: &ElfFile, stores: &Stores) -> Option<ElfFile> {
    stores.find(path, elf, has_symtab).map(|(_, file)| file)
}

/// The modules read so far, shared by all processes of a run: each file is read once.
#[derive(Debug, Default)]
pub struct SymbolCache(BTreeMap<PathBuf, Option<Arc<ElfModule>>>);

impl SymbolCache {
    /// An empty cache.
    pub fn new() -> SymbolCache {
        SymbolCache::default()
    }

    /// The module at `path`, or None if it is not an ELF file for this machine.
    pub fn get(&mut self, path: &Path) -> Option<Arc<ElfModule>> {
        if let Some(known) = self.0.get(path) {
            return known.clone();
        }
        // A mapped device or FIFO must not be opened: that could block or act.
        let regular = path.metadata().is_ok_and(|m| m.is_file());
        let module = if regular { ElfModule::open(path).map(Arc::new) } else { None };
        self.0.insert(path.to_path_buf(), module.clone());
        module
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    const SOURCE: &str = r#"
        int counter = 3; static int table[100]; __thread int mine;
        namespace robot { struct Arm { int move(int); }; int Arm::move(int x) { return x + counter + mine + table[x]; } }
        int main(int c, char **v) { robot::Arm a; return a.move(c); }
    "#;

    fn table(flags: &[&str]) -> SymbolTable {
        let dir = TempDir::new();
        let program = dir.compile("p", "cc", SOURCE, flags);
        SymbolTable::load(&ElfFile::open(&program).unwrap())
    }

    fn start(symbols: &[Symbol], name: &str) -> u64 {
        symbols.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("{name}")).start
    }

    #[test]
    fn functions_and_objects() {
        for flags in [&["-O0"][..], &["-O0", "-no-pie", "-fno-pie"]] {
            let table = table(flags);
            let at = start(&table.functions, "_ZN5robot3Arm4moveEi");
            assert_eq!(table.function(at + 3).unwrap(), ("robot::Arm::move(int)".to_string(), 3));
            assert_eq!(table.function(start(&table.functions, "main")).unwrap(), ("main".to_string(), 0));
            let at = start(&table.objects, "_ZL5table");
            assert_eq!(table.object(at + 16).unwrap(), ("table".to_string(), 16));
            assert_eq!(table.object(at + 399).unwrap().1, 399);
            assert_eq!(table.objects_named("table"), [(at, 400)]);
            assert_eq!(table.objects_named("_ZL5table"), [(at, 400)]);
            assert_eq!(table.objects_named("tables"), []);
            assert_ne!(table.object(at + 400).map(|o| o.0).as_deref(), Some("table"));
            assert!(table.objects.iter().all(|s| s.name != "mine"), "thread-local");
            assert_eq!(table.function(0), None);
            assert_eq!(table.object(u64::MAX), None);
        }
    }

    #[test]
    fn stripped_keeps_what_is_exported() {
        let table = table(&["-s", "-rdynamic"]);
        assert!(!table.is_empty());
        start(&table.functions, "main");
        start(&table.objects, "counter");
        assert!(table.objects.iter().all(|s| s.name != "_ZL5table"));
    }

    #[test]
    fn separate_debug_files_are_found_by_build_id() {
        let dir = TempDir::new();
        let program = dir.compile("p", "cc", SOURCE, &["-O0", "-Wl,--build-id=0xabcdef"]);
        let stores = Stores { debug: dir.path().to_path_buf(), fetched: None };
        std::fs::create_dir_all(dir.path().join(".build-id/ab")).unwrap();
        let objcopy = |how: &str, to: &str| {
            let output = dir.path().join(to);
            let status = std::process::Command::new("objcopy").arg(how).arg(&program).arg(&output).status();
            assert!(status.unwrap().success());
            (ElfFile::open(&output).unwrap(), output)
        };
        objcopy("--only-keep-debug", ".build-id/ab/cdef.debug");
        let (stripped, path) = objcopy("--strip-all", "stripped");
        assert!(!has_symtab(&stripped));
        let debug = SymbolTable::load(&debug_file(&path, &stripped, &stores).unwrap());
        let whole = SymbolTable::load(&ElfFile::open(&program).unwrap());
        assert_eq!((debug.functions, debug.objects), (whole.functions, whole.objects));
        let stores = Stores { debug: dir.path().join("ab"), fetched: None };
        assert!(debug_file(&path, &stripped, &stores).is_none());
    }

    #[test]
    fn the_plainest_name_wins_in_any_order() {
        let symbol = |name: &str| Symbol { start: 8, end: 16, sized: true, name: name.to_string() };
        for order in [["__lock", "lock_alias", "lock"], ["lock", "__lock", "lock_alias"]] {
            let mut all = BTreeMap::new();
            order.into_iter().for_each(|n| insert(&mut all, symbol(n)));
            assert_eq!(all[&8].name, "lock");
        }
    }

    #[test]
    fn nested_ranges_find_the_outer_again() {
        let symbol = |start, end, sized, name: &str| Symbol { start, end, sized, name: name.to_string() };
        let all = [symbol(0, 100, true, "outer"), symbol(10, 20, true, "inner")];
        assert_eq!(lookup(&all, 15).unwrap(), ("inner".to_string(), 5));
        assert_eq!(lookup(&all, 50).unwrap(), ("outer".to_string(), 50));
        assert_eq!(lookup(&all, 100), None);
        let all = [symbol(0, 100, false, "label"), symbol(10, 20, true, "function")];
        assert_eq!(lookup(&all, 9).unwrap().0, "label");
        assert_eq!(lookup(&all, 50), None, "a label ends where the next symbol starts");
    }

    #[test]
    fn a_size_beats_none_in_any_order() {
        let sized = Symbol { start: 8, end: 16, sized: true, name: "__function".to_string() };
        let label = Symbol { start: 8, end: 99, sized: false, name: "label".to_string() };
        for order in [[sized.clone(), label.clone()], [label, sized]] {
            let mut all = BTreeMap::new();
            order.into_iter().for_each(|s| insert(&mut all, s));
            assert_eq!(all[&8], Symbol { start: 8, end: 16, sized: true, name: "label".to_string() });
        }
    }

    #[test]
    fn damaged_files_do_not_panic() {
        let dir = TempDir::new();
        let whole = std::fs::read(dir.compile("p", "cc", SOURCE, &["-O0"])).unwrap();
        for at in (0..64).chain((64..whole.len()).step_by(13)) {
            let mut bytes = whole.clone();
            bytes[at..whole.len().min(at + 4)].fill(0xff);
            if let Ok(elf) = ElfFile::open(&dir.file("damaged", &bytes, 0o755)) {
                let table = SymbolTable::load(&elf);
                let _ = (table.function(0x1150), table.object(u64::MAX));
            }
        }
    }

    #[test]
    fn demangling_leaves_other_names_alone() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_Znot_really"), "_Znot_really");
        assert_eq!(demangle("_ZNSt6thread4joinEv"), "std::thread::join()");
    }

    #[test]
    fn the_cache_reads_once_and_refuses_what_is_no_module() {
        let dir = TempDir::new();
        let program = dir.program("p", &[]);
        let mut cache = SymbolCache::new();
        let first = cache.get(&program).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.get(&program).unwrap()));
        assert!(cache.get(&dir.file("text", "x", 0o644)).is_none());
        assert!(cache.get(Path::new("/dev/zero")).is_none());
        assert!(cache.get(dir.path()).is_none());
        assert!(cache.get(Path::new("/none")).is_none());
    }
}
