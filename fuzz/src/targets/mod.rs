//! What the fuzz targets do with their inputs. `tests/search/corpus.rs` of vsrun compiles this file, too, and does it with the inputs in
//! `fuzz/corpus`. Whatever the bytes are: no panic, an end soon, and no more memory than bytes of their number may ask for. Each says whether
//! the bytes were what they are to be.

mod place;
mod searches;
mod tables;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use vsrun::binary::allowed::Program;
use vsrun::binary::ldcache::LdCache;
use vsrun::binary::modules::Mapping;
use vsrun::report::show;
use vsrun::scenario::{sealed, Scenario};
use vsrun::{args, binary, cluster, explore};

pub use searches::{search, seed};
pub use tables::unwind;

use place::at_path;

/// A scenario file, as it is and with a checksum that holds: `vsrun show`, and the schedule that `vsrun replay` takes from it.
pub fn scenario(data: &[u8]) -> bool {
    let Ok(scenario) = Scenario::from_json(data).or_else(|_| {
        let content = String::from_utf8_lossy(data).into_owned();
        Scenario::from_json(sealed(content).as_bytes())
    }) else {
        return false;
    };
    let text = show::show(&scenario, Path::new("s.vsrun.json"), data.len().is_multiple_of(2));
    assert!(text.lines().all(|line| !line.contains('\r')), "a line that hides what is before");
    let again = Scenario::from_json(scenario.to_json().as_bytes());
    assert!(again.is_ok_and(|again| again == scenario), "what was read is written otherwise");
    searches::replay(&scenario);
    true
}

/// A saved search: its header, with a checksum that holds.
pub fn saved(data: &[u8]) -> bool {
    explore::fuzz::saved(data).is_some() || explore::fuzz::saved(&explore::fuzz::with_checksum(data)).is_some()
}

/// The file that tells the pieces of a search.
pub fn pieces(data: &[u8]) -> bool {
    explore::fuzz::pieces(data)
}

/// A file of a swarm.
pub fn swarm(data: &[u8]) -> bool {
    cluster::swarm::fuzz::file(data)
}

/// An annotation file.
pub fn annotations(data: &[u8]) -> bool {
    explore::fuzz::annotations(data)
}

/// An ELF file: checks before the start, fingerprint, symbols.
pub fn elf(data: &[u8]) -> bool {
    at_path(data, binary::fuzz::read)
}

/// An ELF file: what its threads may do. It is its own library.
pub fn allowed(data: &[u8]) -> bool {
    at_path(data, |path| match Program::load(path, &[(path.to_path_buf(), 0x7000_0000_0000)]) {
        Ok(program) => {
            let bound = program.of_main();
            assert_eq!(bound.anything, !bound.why.is_empty());
            let main = program.main_thread();
            let threads = main.creates.iter().copied().take(10);
            for start in threads.chain([0, program.main().wrapping_add(1), u64::MAX]) {
                let _ = (program.of_function(start), program.function_name(start));
            }
            let _ = (program.settles(), program.function("main"));
            true
        }
        Err(e) => e.to_string().is_empty(),
    })
}

/// An ELF file: its access sites, and how they are patched.
pub fn sites(data: &[u8]) -> bool {
    at_path(data, binary::fuzz::patches)
}

/// The loader's cache of libraries, and the map of a process.
pub fn ldcache(data: &[u8]) -> bool {
    let cache = LdCache::parse(data);
    let found = cache.map(|cache| cache.find("libc.so.6").count());
    let mappings = Mapping::parse_all(data);
    for mapping in &mappings {
        let _ = (mapping.file(), mapping.is_executable(), mapping.contains(0x1000));
    }
    found.is_some() || !mappings.is_empty()
}

/// The words of a command line, each after a 0 but the first, which is vsrun's.
pub fn arguments(data: &[u8]) -> bool {
    let words = data.split(|b| *b == 0).take(40).map(|word| OsStr::from_bytes(word).to_os_string());
    match args::parse(std::iter::once(OsString::from("vsrun")).chain(words)) {
        Ok(_) => true,
        Err(e) => {
            assert!(!e.text.is_empty() && (e.code == 0 || e.code == 2));
            false
        }
    }
}
