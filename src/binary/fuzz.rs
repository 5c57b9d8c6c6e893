//! All that is read of an ELF file, for fuzzing: without starting a process, which a check before the start may do.

use std::path::Path;

use super::elf::ElfFile;
use super::preflight;
use super::symbols::SymbolCache;
use super::{BinaryId, Modules};

/// Reads the file at `path`, whatever it is. Gives whether it has symbols.
pub fn read(path: &Path) -> bool {
    if let Err(refusal) = preflight::readable(path, Path::new("/")) {
        assert!(!refusal.message().is_empty());
    }
    assert!(BinaryId::of(path).is_ok());
    if let Ok(elf) = ElfFile::open(path) {
        let _ = (elf.interpreter(), elf.dynamic(), elf.sections(), elf.build_id(), elf.section(b".eh_frame"));
        let _ = (elf.entry(), elf.has_entry(), elf.is_dyn());
        assert!(!elf.loads().is_empty());
    }
    symbols(path)
}

/// Names of what lies in it, as it is loaded at two places.
fn symbols(path: &Path) -> bool {
    let mut cache = SymbolCache::new();
    let Some(module) = cache.get(path) else { return false };
    let symbols = module.symbols();
    let mut places = vec![0, 0x1139, u64::MAX];
    places.extend(symbols.functions.iter().chain(&symbols.objects).take(50).flat_map(|s| [s.start, s.end]));
    for &at in &places {
        let _ = (symbols.function(at), symbols.object(at));
    }
    for symbol in symbols.objects.iter().take(50) {
        assert!(!symbols.objects_named(&symbol.name).is_empty());
    }
    let line = |start: u64, offset: u64| {
        format!("{start:x}-{:x} r-xp {offset:08x} 00:00 1 {}\n", start + 0x3000, path.display())
    };
    let maps = [line(0x5555_5555_4000, 0), line(0x7fff_f7f0_1000, 0x1000)].concat();
    let modules = Modules::parse(maps.as_bytes(), &mut cache);
    for module in modules.modules() {
        for &at in &places {
            let _ =
                (modules.describe(module.bias.wrapping_add(at)), modules.locate_return(module.bias.wrapping_add(at)));
        }
    }
    !symbols.is_empty()
}
