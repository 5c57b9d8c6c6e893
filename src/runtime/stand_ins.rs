//! Which words of the modules are to have the addresses of what stands in for functions of libc, which are not watched: see the shim's
//! `calls::library`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use vsrun_model::library::{Does, FUNCTIONS, NAME, OTHERS};

use super::loaded::{file_name, Loaded};
use super::memory::{MemoryError, ProcessMemory};
use super::session::SHIM_NAME;
use super::watched::Watched;
use crate::binary::Mapping;

/// A word of a module that is to have the address of a stand-in.
pub(super) struct StandIn {
    pub(super) at: u64,
    /// Of the function, see `vsrun_model::library`.
    pub(super) number: usize,
}

#[derive(Default)]
pub(super) struct StandIns {
    /// Where the modules would call functions of libc's, or of the shim's in their place, that have to be seen.
    pub(super) calls: Vec<StandIn>,
    /// The names of those of which it is not known what they do. The shim finds those that no module calls.
    pub(super) others: Vec<String>,
    /// What has no stand-in though it should.
    pub(super) missed: Option<String>,
}

/// What is to stand in for functions of libc in what is loaded, and in libraries that come later.
pub(super) fn stand_ins(
    watched: &Watched,
    loaded: &[Loaded],
    maps: &[u8],
    memory: &ProcessMemory,
) -> Result<StandIns, MemoryError> {
    // What comes later has no say in how calls of what is loaded are bound.
    let is_there = watched.modules.iter().zip(loaded).filter(|(_, loaded)| !loaded.is_late);
    let defined: BTreeSet<&str> = is_there.flat_map(|(m, _)| &m.sites.defines).map(String::as_str).collect();
    let mappings = Mapping::parse_all(maps);
    let of = |start: &'static str| {
        mappings.iter().filter(move |m| m.file().is_some_and(|f| file_name(f).starts_with(start)))
    };
    let ranges: Vec<Range<u64>> = of("libc.so").chain(of(SHIM_NAME)).map(|m| m.start..m.end).collect();
    let functions = of("libc.so").next().and_then(Mapping::file).map(functions_of).unwrap_or_default();
    let known: BTreeMap<&str, usize> = FUNCTIONS.iter().enumerate().map(|(n, f)| (f.name, n)).collect();
    let mut all = StandIns { missed: too_many(&functions, &known), ..StandIns::default() };
    let functions: BTreeSet<&str> = functions.iter().map(String::as_str).collect();
    for (module, loaded) in watched.modules.iter().zip(loaded) {
        let own = |at: u64| loaded.text.iter().any(|(start, b)| (*start..start + b.len() as u64).contains(&at));
        for (at, name) in &module.sites.imports {
            let known = known.get(name.as_str());
            let is_wanted =
                known.map_or(functions.contains(name.as_str()), |known| FUNCTIONS[*known].does != Does::Nothing);
            if !is_wanted {
                continue;
            }
            let at = at.wrapping_add(module.bias);
            // What comes later is bound to the stand-ins by the tables of symbols, which lead there.
            let there = if loaded.is_late { 0 } else { memory.read_u64(at)? };
            // One that the loader has not filled yet leads back into the module. Whose it will be, if another module has that name too, the loader
            // finds by the tables of symbols, as for what comes later.
            let is_bound = ranges.iter().any(|range| range.contains(&there));
            let may_be = !defined.contains(name.as_str()) && (loaded.is_late || own(there));
            if !is_bound && !may_be {
                continue;
            }
            let number = match known {
                Some(number) => *number,
                None => match all.others.iter().position(|other| other == name) {
                    Some(n) => FUNCTIONS.len() + n,
                    None if all.others.len() < OTHERS && name.len() < NAME => {
                        all.others.push(name.clone());
                        FUNCTIONS.len() + all.others.len() - 1
                    }
                    None => {
                        all.missed.get_or_insert_with(|| format!("what libc's function {name} does to memory"));
                        continue;
                    }
                },
            };
            if !loaded.is_late {
                all.calls.push(StandIn { at, number });
            }
        }
    }
    Ok(all)
}

/// That not all functions of libc that are not known can have a stand-in, if so.
fn too_many(functions: &[String], known: &BTreeMap<&str, usize>) -> Option<String> {
    let unknown = functions.iter().filter(|name| !known.contains_key(name.as_str())).count();
    (unknown > OTHERS).then(|| format!("what {} of libc's functions do to memory", unknown - OTHERS))
}

/// The functions that a file exports, each version of them.
fn functions_of(path: &Path) -> Vec<String> {
    const CHOSEN: u8 = 10;
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let Ok(elf) = goblin::elf::Elf::parse(&bytes) else { return Vec::new() };
    let functions = elf.dynsyms.iter().filter(|s| s.st_value != 0 && (s.is_function() || s.st_type() == CHOSEN));
    functions.filter_map(|s| elf.dynstrtab.get_at(s.st_name)).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_functions_than_there_is_room_for_are_said() {
        let known: BTreeMap<&str, usize> = [("memcpy", 0)].into();
        let mut functions = vec!["some".to_owned(); OTHERS];
        functions.push("memcpy".into());
        assert_eq!(too_many(&functions, &known), None);
        functions.push("one".into());
        assert_eq!(too_many(&functions, &known), Some("what 1 of libc's functions do to memory".into()));
    }
}
