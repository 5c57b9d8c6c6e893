//! All that is read of an ELF file and concluded from it, for fuzzing: without starting a process, which a check before the start may do.

use std::path::Path;

use vsrun_model::watch::SLOW_PATHS;

use super::allowed::image::Image;
use super::elf::ElfFile;
use super::patch::{plan, Form, Input, Space};
use super::preflight;
use super::sites::{find, Choice};
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
            let _ = (modules.place(module.bias.wrapping_add(at)), modules.variable_name(module.bias.wrapping_add(at)));
        }
    }
    !symbols.is_empty()
}

/// Finds the access sites of the file at `path` and plans how they are patched. Gives whether it has some.
pub fn patches(path: &Path) -> bool {
    const BIAS: u64 = 0x5555_5555_4000;
    let (Ok(sites), Ok(image)) = (find(path, Choice::default()), Image::load(path, BIAS)) else { return false };
    let text: Vec<(u64, Vec<u8>)> = image.code().map(|(start, bytes)| (start, bytes.to_vec())).collect();
    let slow: [u64; SLOW_PATHS] = std::array::from_fn(|n| 0x7fff_f7f0_0000 + 64 * n as u64);
    for form in [Form::Best, Form::Punned, Form::Trapped] {
        let taken = text
            .iter()
            .map(|(start, bytes)| start.saturating_sub(0x1000)..start.saturating_add(bytes.len() as u64 + 0x4000));
        let (plan, modules) =
            plan(&[Input { sites: &sites, bias: BIAS, text: text.clone() }], Space::new(taken), slow, form);
        assert_eq!(modules.len(), 1);
        for (at, bytes) in &plan.writes {
            let within =
                |(start, code): &(u64, Vec<u8>)| at >= start && (at - start) as usize + bytes.len() <= code.len();
            assert!(text.iter().any(within), "bytes at {at:x} are written that are no code of the module");
        }
        for mapped in &plan.mapped {
            let apart = |(start, code): &(u64, Vec<u8>)| {
                mapped.at >= start + code.len() as u64 || mapped.at + mapped.bytes.len() as u64 <= *start
            };
            assert!(text.iter().all(apart), "what is mapped at {:x} lies over code", mapped.at);
        }
    }
    sites.checked() > 0
}
