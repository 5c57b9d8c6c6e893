//! Is memory really watched? A program of our own, whose accesses are known, is watched in each way of patching, and what is recorded is
//! compared: instrumentation that is lost is found here, and not taken for a program without races. And: how the accesses of a
//! program of the user's would be watched.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::args;
use crate::base::text::escape;
use crate::binary::patch::{Form, Statistics};
use crate::binary::sites::Reason;
use crate::binary::SymbolCache;
use crate::config::{Command, Config};
use crate::explore::{start_watched, Failure};
use crate::runtime::{Watch, Watched, WatchedModule, Worker};
use crate::schedule::Schedule;

static CANARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vsrun-canary"));
const NAME: &str = "vsrun-canary";
/// What its threads touch, each: offset in its cells, bytes, whether it writes, whether it is locked.
const TOUCHED: [(u64, u64, bool, bool); 8] = [
    (0x100, 8, false, false),
    (0x110, 4, true, false),
    (0x120, 8, true, true),
    (0, 4, false, false),
    (8, 4, true, false),
    (16, 2, false, false),
    (24, 1, false, false),
    (32, 1, true, false),
];
/// Bytes of an entry of the log: of the entry itself, thread, transition.
const ENTRY: usize = 24;

/// A directory of our own, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn make() -> Result<Place, String> {
        let path = std::env::temp_dir().join(format!("vsrun-canary-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|e| format!("{}: {e}", escape(&path)))?;
        Ok(Place(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Watches the canary in each form of patches. Gives how, or what was not recorded.
pub fn sing() -> Result<String, String> {
    let place = Place::make()?;
    let program = place.0.join(NAME);
    fs::write(&program, CANARY).map_err(|e| e.to_string())?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).map_err(|e| e.to_string())?;
    let mut said = Vec::new();
    for form in [Form::Best, Form::Punned, Form::Trapped] {
        let log = place.0.join("log");
        let statistics = sing_as(&program, form, &log)?;
        let Statistics { jump, group, punned, trap, .. } = statistics;
        let (lost, words) = match form {
            Form::Best => (jump == 0 || group == 0, format!("{jump} jumps, {group} groups")),
            Form::Punned => (punned == 0, format!("{punned} punned")),
            Form::Trapped => (trap == 0, format!("{trap} traps")),
        };
        if lost {
            return Err(format!("known code is not patched as it was ({words})"));
        }
        said.push(words);
    }
    Ok(said.join(", "))
}

fn sing_as(program: &Path, form: Form, log: &Path) -> Result<Statistics, String> {
    let config = config(&[program.into()]).map_err(|e| e.message)?;
    let watch = Watch { form, log: Some(log.into()), ..Watch::default() };
    let mut worker = start_watched(&config, watch).map_err(|e| e.message)?;
    let cells = cells(program, &worker)?;
    worker.run(&Schedule::default()).map_err(|e| e.to_string())?;
    if worker.status() != Some(0) {
        return Err(format!(
            "the program with known accesses ended with status {:?} when watched ({form:?})",
            worker.status()
        ));
    }
    let recorded = fs::read(log).map_err(|e| e.to_string())?;
    let mut seen: BTreeMap<u32, BTreeSet<(u64, u64, bool, bool)>> = BTreeMap::new();
    for entry in recorded.chunks_exact(ENTRY) {
        let word = |n: usize| u32::from_le_bytes([entry[4 * n], entry[4 * n + 1], entry[4 * n + 2], entry[4 * n + 3]]);
        let offset = (u64::from(word(0)) | u64::from(word(1)) << 32).wrapping_sub(cells);
        if offset < 512 {
            let touch = (offset, u64::from(word(3) >> 2), word(3) & 1 != 0, word(3) & 2 != 0);
            seen.entry(word(4)).or_default().insert(touch);
        }
    }
    let expected: BTreeSet<_> = TOUCHED.into_iter().collect();
    for thread in [0, 1] {
        let found = seen.remove(&thread).unwrap_or_default();
        if found != expected {
            let missed = expected.difference(&found).count();
            let more = found.difference(&expected).count();
            return Err(format!(
                "of 8 known accesses of thread {thread}, {missed} were not recorded, and {more} others were ({form:?})"
            ));
        }
    }
    let module = worker.watched().and_then(|watched| watched.modules.iter().find(|m| m.name == NAME));
    module.map(|m| m.statistics).ok_or_else(|| "the program with known accesses is not watched".to_string())
}

/// Where the canary's cells are.
fn cells(program: &Path, worker: &Worker) -> Result<u64, String> {
    let module = SymbolCache::new().get(program).ok_or("the program with known accesses cannot be read")?;
    let watched = worker.watched().ok_or("nothing is watched")?;
    let bias = watched.modules.iter().find(|m| m.name == NAME).map(|m| m.bias);
    let found = module.symbols().objects_named("vs_canary_cells").first().map(|(start, _)| *start);
    bias.zip(found)
        .map(|(bias, at)| bias.wrapping_add(at))
        .ok_or_else(|| "the known accesses are not found".to_string())
}

/// How `program` is run once.
fn config(program: &[OsString]) -> Result<Config, Failure> {
    let words = ["vsrun", "--once", "--"].into_iter().map(OsString::from).chain(program.iter().cloned());
    match args::parse(words) {
        Ok(Command::Explore(config)) => Ok(config),
        Ok(_) => Err(Failure::own("vsrun bug: the words for a program are taken for something else")),
        Err(e) => Err(Failure::environment(e.text.trim_start_matches("vsrun: ").to_string())),
    }
}

/// How the memory accesses of a program are watched, module by module, in words.
///
/// # Errors
/// The program does not get to main under vsrun.
pub fn of_program(program: &[OsString]) -> Result<String, Failure> {
    let worker = start_watched(&config(program)?, Watch::default())?;
    let Some(watched) = worker.watched() else { return Err(Failure::own("vsrun bug: nothing is watched")) };
    Ok(describe(watched))
}

fn describe(watched: &Watched) -> String {
    let mut text = String::new();
    let mut total = Statistics::default();
    for module in &watched.modules {
        total += module.statistics;
        describe_module(&mut text, module);
    }
    for name in &watched.left_out {
        let _ = writeln!(text, "{}: not watched, by choice", escape(name));
    }
    let _ = writeln!(text, "all: {}, {} pages of slots", words_of(&total), watched.slot_pages);
    text
}

fn words_of(statistics: &Statistics) -> String {
    let Statistics { sites, repeated, jump, group, inside, punned, trap, bytes } = *statistics;
    let checked = jump + group + inside + punned + trap;
    let part = |n: usize| format!("{n} ({:.2} %)", 100.0 * n as f64 / checked.max(1) as f64);
    format!(
        "{sites} sites, {repeated} of them repeated; jump {}, group {}, inside a group {}, punned {}, trap {}; {} KiB of trampolines",
        part(jump), part(group), part(inside), part(punned), part(trap), bytes.div_ceil(1024)
    )
}

fn describe_module(text: &mut String, module: &WatchedModule) {
    let counts = module.sites.counts;
    let _ = writeln!(text, "{}: {}", escape(&module.name), words_of(&module.statistics));
    let _ = writeln!(
        text,
        "  {} instructions in {} functions, {} of them with jumps that are not understood",
        counts.instructions, counts.functions, counts.opaque
    );
    let mut reasons: BTreeMap<Reason, Vec<(u64, u64)>> = BTreeMap::new();
    for part in &module.unwatched {
        reasons.entry(part.reason).or_default().push((part.at, part.length));
    }
    const SHOWN: usize = 3;
    for (reason, parts) in reasons {
        let bytes: u64 = parts.iter().map(|(_, length)| length).sum();
        let first: Vec<_> = parts.iter().take(SHOWN).map(|(at, _)| format!("+{at:#x}")).collect();
        let more = if parts.len() > SHOWN { ", .." } else { "" };
        let _ = writeln!(
            text,
            "  not watched: {} places, {bytes} bytes, since {reason} ({}{more})",
            parts.len(),
            first.join(", ")
        );
    }
}
