//! Watching memory: analyses the modules of the program at its root, plans their patches, lets the root map what the plan needs, and
//! writes the patches. Executions are forked from the root and inherit all of it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use vsrun_model::arena::Command;
use vsrun_model::library::STRIDE;
use vsrun_model::watch::{
    state, Change, Header, Mapping as Mapped, Operand, Original, Other, Part, Place, Predicate, TRAP_ALONE, WATCH_ADDR,
    WATCH_MAGIC,
};

use super::late::{libraries, Late};
use super::loaded::{file_name, is_left_out, Changes, Loaded};
use super::memory::ProcessMemory;
use super::predicates;
use super::session::PrivateDir;
use super::setup::StartError;
use super::stand_ins::{stand_ins, StandIn, StandIns};
use super::tossed::patched;
use super::watched::{Watched, WatchedModule};
use super::worker::Worker;
use crate::base::text::escape;
use crate::binary::elf::ElfFile;
use crate::binary::patch::{plan, Input, Plan, Space, Statistics};
use crate::binary::sites::{self, Choice, Reason, Sites, Unit, Unwatched};
use crate::binary::{Mapping, Modules, SymbolCache};

const PAGE: u64 = 4096;
/// By that name programs ask libstdc++ for what the processor gives.
const RANDOM_DEVICE: &[u8] = b"_ZNSt13random_device";
/// How often who waits for an analysis looks whether it is to be given up.
const GIVES_UP: Duration = Duration::from_millis(50);

impl Worker {
    /// How memory is watched, if it is.
    pub fn watched(&self) -> Option<&Watched> {
        self.watched.as_ref()
    }

    /// Code that came after the patches in the execution last run, and is not watched: how often, and the first.
    pub fn later_code(&self) -> Option<(u32, String)> {
        let watching = &self.arena.control.watching;
        let end = watching.name.iter().position(|&b| b == 0).unwrap_or(0);
        (watching.later > 0)
            .then(|| (watching.later, escape(Path::new(std::ffi::OsStr::from_bytes(&watching.name[..end])))))
    }

    /// Patches the program, which stands at its root, if memory is to be watched.
    pub(super) fn watch_memory(&mut self) -> Result<(), StartError> {
        let Some(watch) = self.spec.watch.clone() else { return Ok(()) };
        let memory = ProcessMemory::open(self.root).map_err(io::Error::other)?;
        let maps = std::fs::read(format!("/proc/{}/maps", self.root))?;
        let changed = patched(&self.tossed);
        let (mut loaded, left_out) = modules(&maps, &memory, &changed);
        let late = libraries(&self.spec.objects.late);
        loaded.extend(late.iter().filter_map(Late::loaded));
        let mut sites = analyse(&loaded, watch.choice, || self.is_to_stop()).ok_or(StartError::Interrupted)?;
        loaded.iter().zip(&mut sites).for_each(|(module, sites)| leave_alone(sites, module.bias, &changed));
        let all_maps = late.iter().fold(maps.clone(), |maps, late| [maps, late.maps()].concat());
        let places = Modules::parse(&all_maps, &mut SymbolCache::new());
        let predicates = predicates::add(&self.spec.options.predicates, &places, &loaded, &mut sites, &changed)?;
        let inputs = loaded.iter().zip(&sites).map(|(m, sites)| Input { sites, bias: m.bias, text: m.text.clone() });
        let inputs: Vec<Input> = inputs.collect();
        let mut space = space(&maps);
        late.iter().for_each(|late| space.take(late.range.start - PAGE..late.range.end + PAGE));
        let (mut plan, results) = plan(&inputs, space, self.arena.control.watching.slow, watch.form);
        drop(inputs);
        predicates.are_patched(|n| &results[n].1)?;
        let mut watched = watched(&loaded, sites, results, &plan);
        watched.left_alone = left_alone(&loaded, &maps);
        watched.left_out = left_out;
        watched.notes = predicates.notes();
        watched.places = places;
        let random = random_numbers(&watched, &loaded);
        watched.notes.extend(random);
        let own_traps = if watch.by_itself { &plan.traps[..] } else { &[] };
        let parts = late.iter().flat_map(|late| late.parts(&plan.writes, own_traps)).collect();
        let is_late = |at: u64| late.iter().any(|late| late.range.contains(&at));
        plan.writes.retain(|(at, _)| !is_late(*at));
        let StandIns { calls, others, missed } =
            stand_ins(&watched, &loaded, &maps, &memory).map_err(io::Error::other)?;
        watched.left_alone = watched.left_alone.or(missed);
        let mut originals = Vec::new();
        for (at, bytes) in &plan.writes {
            let mut original = vec![0; bytes.len()];
            memory.read(*at, &mut original).map_err(io::Error::other)?;
            originals.push((*at, original));
        }
        originals.sort_by_key(|original| original.0);
        let mut writes = [plan.writes.clone(), self.stand_in(&calls)].concat();
        let mut changes = Changes::default();
        if watch.by_itself {
            writes.extend(plan.traps.iter().filter(|trap| !is_late(trap.at)).map(|trap| (trap.at, vec![TRAP_ALONE])));
            changes = Changes::new(&writes, &memory).map_err(io::Error::other)?;
        }
        let log = watch.log.as_deref();
        let thread_local = thread_local(&watched.places);
        let rest = Rest { predicates: predicates.placed, others, originals, thread_local, changes, parts, log };
        let file = file_of(&watched, &plan, rest);
        if watch.by_itself {
            self.patches = Some(file);
            return Ok(());
        }
        self.map_in_root(&file)?;
        for (at, bytes) in &writes {
            memory.write(*at, bytes).map_err(io::Error::other)?;
        }
        if let Some(log) = &watch.log {
            write_log_key(log, &watched)?;
        }
        self.watched = Some(watched);
        Ok(())
    }

    /// Lets the root map the file with these bytes.
    fn map_in_root(&mut self, bytes: &[u8]) -> Result<(), StartError> {
        let path = put_beside(&self.dir, bytes)?;
        self.ask_root(Command::WATCH)?;
        std::fs::remove_file(&path)?;
        match self.arena.control.watching.state {
            state::ON => Ok(()),
            error => Err(StartError::Environment(format!(
                "environment: memory cannot be watched: there is no room for its shadow ({}); ulimit -v unlimited, or --race off (see vm.overcommit_memory, too)",
                io::Error::from_raw_os_error(-error)
            ))),
        }
    }

    /// What is to be written so that the modules call what stands in for functions of libc, where those would be called.
    fn stand_in(&self, calls: &[StandIn]) -> Vec<(u64, Vec<u8>)> {
        let first = self.arena.control.watching.functions;
        let address = |call: &StandIn| first + STRIDE * call.number as u64;
        calls.iter().map(|call| (call.at, address(call).to_le_bytes().to_vec())).collect()
    }
}

/// Puts the file with these bytes where the shim looks for it.
pub(super) fn put_beside(dir: &PrivateDir, bytes: &[u8]) -> io::Result<PathBuf> {
    let path = dir.shim().with_file_name("watch");
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(bytes)?;
    Ok(path)
}

/// How many bytes below their thread pointers threads have for what is thread-local in the modules that are loaded, at most.
fn thread_local(all: &Modules) -> u64 {
    let paths = all.modules().iter().map(|module| module.elf.path()).filter(|path| path.is_absolute());
    let files = paths.map(ElfFile::open);
    let segments = files.flat_map(|file| file.map_or(vec![(0, u64::MAX)], |file| file.thread_local()));
    let sizes = segments.map(|(align, size)| size.saturating_add(2 * align.max(64)));
    sizes.fold(0, u64::saturating_add)
}

/// Nothing is patched where vsrun has `changed` the code of a module that lies at `bias`: it is not executed. Of the space behind a
/// function only what is left may be used.
fn leave_alone(sites: &mut Arc<Sites>, bias: u64, changed: &[Range<u64>]) {
    for range in changed.iter().map(|range| range.start.wrapping_sub(bias)..range.end.wrapping_sub(bias)) {
        let overlaps = |unit: &Unit| unit.at < range.end && range.start < unit.at + u64::from(unit.room);
        if !sites.units.iter().any(overlaps) {
            continue;
        }
        let units = &mut Arc::make_mut(sites).units;
        units.retain(|unit| !range.contains(&unit.at));
        units.iter_mut().filter(|unit| overlaps(unit)).for_each(|unit| unit.room = (range.start - unit.at) as u8);
    }
}

/// The modules that are to be watched, and the names of the others. `changed`: where vsrun has changed their code.
fn modules(maps: &[u8], memory: &ProcessMemory, changed: &[Range<u64>]) -> (Vec<Loaded>, Vec<String>) {
    let all = Modules::parse(maps, &mut SymbolCache::new());
    let (mut loaded, mut left_out) = (Vec::new(), Vec::new());
    for module in all.modules() {
        let path = module.elf.path().to_path_buf();
        let name = module.name();
        if is_left_out(&name) {
            left_out.push(name);
            continue;
        }
        let own = all.mappings().iter().filter(|m| m.is_executable() && m.file() == Some(&path));
        let own = own.filter(|m| module.range.contains(&m.start));
        let (mut text, mut intact) = (Vec::new(), true);
        for mapping in own {
            let mut bytes = vec![0; (mapping.end - mapping.start) as usize];
            let is_read = memory.read(mapping.start, &mut bytes).is_ok();
            intact &= is_read && !mapping.perms.contains('w');
            intact &= is_of_file(&path, mapping.offset, &bytes, (mapping.start, changed));
            text.push((mapping.start, bytes));
        }
        loaded.push(Loaded { path, name, bias: module.bias, text, intact, is_late: false });
    }
    loaded.sort_by_key(|m| m.text.first().map(|t| t.0));
    (loaded, left_out)
}

/// Code that is not watched as a whole: a module whose code is not that of its file, and any that can be written. Of what has no file
/// the shim tells.
fn left_alone(loaded: &[Loaded], maps: &[u8]) -> Option<String> {
    let changed = loaded.iter().find(|module| !module.intact).map(|module| module.name.clone());
    let all = Mapping::parse_all(maps);
    let written = all.iter().find(|m| m.is_executable() && m.perms.contains('w'));
    changed.or_else(|| written.map(|m| m.path.as_ref().map_or("anonymous memory".into(), |path| file_name(path))))
}

/// The file has these bytes, mapped at an address, there, but where they were `changed`; behind its end there are none.
fn is_of_file(path: &Path, offset: u64, bytes: &[u8], (start, changed): (u64, &[Range<u64>])) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut there = vec![0; bytes.len()];
    let mut n = 0;
    while let Ok(more @ 1..) = file.read_at(&mut there[n..], offset + n as u64) {
        n += more;
    }
    for at in changed.iter().flat_map(Clone::clone) {
        let at = at.wrapping_sub(start) as usize;
        if let (Some(there), Some(byte)) = (there.get_mut(at), bytes.get(at)) {
            *there = *byte;
        }
    }
    there[..n] == bytes[..n]
}

/// The sites of the modules, each found in a thread of its own. `None`: it was given up. A large program takes a minute, and threads
/// cannot be ended: they are left to themselves then.
fn analyse(loaded: &[Loaded], choice: Choice, gives_up: impl Fn() -> bool) -> Option<Vec<Arc<Sites>>> {
    let directory = sites::directory();
    let (sender, found) = mpsc::channel();
    let mut all: Vec<Sites> = loaded.iter().map(|module| whole(module, Reason::Changed)).collect();
    for (n, module) in loaded.iter().enumerate().filter(|(_, module)| module.intact) {
        all[n] = whole(module, Reason::Undecodable);
        let (path, directory, sender) = (module.path.clone(), directory.clone(), sender.clone());
        let find = move || {
            // Nobody waits for it any more where it was given up.
            let _ = sender.send((n, sites::find_cached(&path, choice, directory.as_deref())));
        };
        // Where there is no thread to be had it is done here.
        let find = Arc::new(find);
        let begun = std::thread::Builder::new().spawn({
            let find = Arc::clone(&find);
            move || find()
        });
        begun.err().inspect(|_| find());
    }
    drop(sender);
    loop {
        match found.recv_timeout(GIVES_UP) {
            Ok((n, sites)) => sites.into_iter().for_each(|sites| all[n] = sites),
            Err(RecvTimeoutError::Disconnected) => return Some(all.into_iter().map(Arc::new).collect()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if gives_up() {
            return None;
        }
    }
}

/// Nothing of a module is watched.
fn whole(module: &Loaded, reason: Reason) -> Sites {
    let part = |(start, bytes): &(u64, Vec<u8>)| Unwatched {
        at: start.wrapping_sub(module.bias),
        length: bytes.len() as u64,
        reason,
    };
    Sites { unwatched: module.text.iter().map(part).collect(), ..Sites::default() }
}

/// The addresses of the process that are free, without those into which its heap and its stack grow.
pub(super) fn space(maps: &[u8]) -> Space {
    const HEAP: u64 = 1 << 30;
    const STACK: u64 = 64 << 20;
    let mappings = Mapping::parse_all(maps);
    let ranges = mappings.iter().map(|m| match m.path.as_ref().and_then(|p| p.to_str()) {
        Some("[heap]") => m.start..m.end + HEAP,
        Some("[stack]") => m.start.saturating_sub(STACK)..m.end,
        _ => m.start.saturating_sub(PAGE)..m.end + PAGE,
    });
    // The heap of a program that has none yet begins behind it.
    let first = mappings.first().and_then(|m| m.path.clone());
    let program = mappings.iter().filter(|m| m.path.is_some() && m.path == first).map(|m| m.end).max();
    Space::new(ranges.chain(program.map(|end| end..end + HEAP)))
}

fn watched(
    loaded: &[Loaded],
    sites: Vec<Arc<Sites>>,
    results: Vec<(Statistics, Vec<Unwatched>)>,
    plan: &Plan,
) -> Watched {
    let mut first_site = 0;
    let mut modules = Vec::new();
    for ((module, sites), (statistics, more)) in loaded.iter().zip(sites).zip(results) {
        let mut unwatched = sites.unwatched.clone();
        unwatched.extend(more);
        let next = first_site + sites.sites.len();
        modules.push(WatchedModule {
            name: module.name.clone(),
            bias: module.bias,
            sites,
            first_site,
            statistics,
            unwatched,
        });
        first_site = next;
    }
    let trampolines = plan.mapped.iter().map(|m| m.at..m.at + m.bytes.len() as u64).collect();
    let (moves, traps) = (Arc::new(plan.moves.clone()), plan.traps.clone());
    Watched {
        modules,
        left_alone: None,
        left_out: Vec::new(),
        moves,
        slot_pages: plan.slot_pages,
        places: Modules::default(),
        notes: Vec::new(),
        traps,
        trampolines,
    }
}

/// A file as the shim maps it.
#[derive(Default)]
struct FileImage(Vec<u8>);

impl FileImage {
    /// Adds words of 64 bits, and gives where they are and how many records of `size` bytes.
    fn table(&mut self, words: impl Iterator<Item = u64>, size: usize) -> [u64; 2] {
        let at = self.0.len();
        words.for_each(|word| self.0.extend(word.to_le_bytes()));
        [at as u64, ((self.0.len() - at) / size) as u64]
    }

    /// Adds names as [`Other`]s, and gives where they are and how many.
    fn names(&mut self, names: &[String]) -> [u64; 2] {
        let at = self.0.len();
        for name in names {
            self.0.extend(name.bytes());
            self.0.resize(self.0.len() + size_of::<Other>() - name.len(), 0);
        }
        [at as u64, names.len() as u64]
    }

    /// Adds [`Original`]s and their bytes, and gives where they are and how many.
    fn originals(&mut self, all: &[(u64, Vec<u8>)]) -> [u64; 2] {
        let mut offset = self.0.len() + all.len() * size_of::<Original>();
        let mut words = Vec::new();
        for (at, bytes) in all {
            words.extend([*at, bytes.len() as u64, offset as u64]);
            offset += bytes.len();
        }
        let table = self.table(words.into_iter(), size_of::<Original>());
        all.iter().for_each(|(_, bytes)| self.0.extend(bytes));
        // Words follow.
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        table
    }

    /// Adds [`Change`]s and their bytes, and gives where they are and how many.
    fn changes(&mut self, all: Changes) -> [u64; 2] {
        let bytes_at = self.0.len() as u64;
        self.0.extend(all.bytes);
        // Words follow.
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let placed = |[at, length, was, is]: [u64; 4]| [at, length, was + bytes_at, is + bytes_at];
        self.table(all.words.into_iter().flat_map(placed), size_of::<Change>())
    }

    fn fill_page(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(PAGE as usize), 0);
    }
}

fn words_of(operand: &Operand, bias: u64) -> [u64; 2] {
    let bias = if operand.is(Operand::OF_MODULE) { bias } else { 0 };
    let Operand { displacement, base, index, scale, bit, size, flags } = *operand;
    let [s0, s1] = size.to_le_bytes();
    let [f0, f1] = flags.to_le_bytes();
    [displacement.wrapping_add(bias), u64::from_le_bytes([base, index, scale, bit, s0, s1, f0, f1])]
}

fn words_of_predicate(predicate: &Predicate) -> [u64; 3] {
    let Predicate { what, base, length, to, reserved, offset, size } = *predicate;
    let [w0, w1, w2, w3] = what.to_le_bytes();
    [u64::from_le_bytes([w0, w1, w2, w3, base, length, to, reserved]), offset, size]
}

/// What is in the file beside the patches.
struct Rest<'a> {
    predicates: Vec<Predicate>,
    others: Vec<String>,
    /// What is where patches are to be written, ascending.
    originals: Vec<(u64, Vec<u8>)>,
    thread_local: u64,
    /// What the process is to write itself.
    changes: Changes,
    /// Of libraries that come later.
    parts: Vec<(Part, Changes)>,
    log: Option<&'a Path>,
}

/// The file with everything that the shim needs.
fn file_of(watched: &Watched, plan: &Plan, rest: Rest) -> Vec<u8> {
    let mut file = FileImage(vec![0; size_of::<Header>()]);
    let mut first = 0u32;
    let mut starts = Vec::new();
    for site in watched.modules.iter().flat_map(|m| &m.sites.sites) {
        starts.push(first);
        first += site.operands.len() as u32;
    }
    starts.extend([first, 0]);
    let pairs = |table: &[u32]| {
        table.chunks(2).map(|c| u64::from(c[0]) | u64::from(*c.get(1).unwrap_or(&0)) << 32).collect::<Vec<_>>()
    };
    let count = starts.len() as u64 - 2;
    let [sites_at, _] = file.table(pairs(&starts).into_iter(), 4);
    let operands = watched.modules.iter().flat_map(|m| m.sites.sites.iter().map(|s| (s, m.bias)));
    let operands = operands.flat_map(|(site, bias)| site.operands.iter().flat_map(move |o| words_of(o, bias)));
    let operands = file.table(operands, size_of::<Operand>());
    let places = |all: &[Place]| all.iter().flat_map(|p| [p.at, p.to]).collect::<Vec<_>>();
    let traps = file.table(places(&plan.traps).into_iter(), size_of::<Place>());
    let moves = file.table(places(&plan.moves).into_iter(), size_of::<Place>());
    let predicates = rest.predicates.iter().flat_map(words_of_predicate);
    let predicates = file.table(predicates, size_of::<Predicate>());
    let others = file.names(&rest.others);
    let originals = file.originals(&rest.originals);
    let changes = file.changes(rest.changes);
    let mut parts = Vec::new();
    for (part, changes) in rest.parts {
        let Part { file: id, whole, around, part, .. } = part;
        parts.extend(id.into_iter().chain(whole).chain([around]).chain(part).chain(file.changes(changes)));
    }
    let parts = file.table(parts.into_iter(), size_of::<Part>());
    let whole = |bytes: &[u8]| (bytes.len() as u64).next_multiple_of(PAGE);
    let tables = (file.0.len() + plan.mapped.len() * size_of::<Mapped>()) as u64;
    let mut offset = tables.next_multiple_of(PAGE);
    let mut mappings = Vec::new();
    for mapped in &plan.mapped {
        mappings.extend([mapped.at, whole(&mapped.bytes), offset]);
        offset += whole(&mapped.bytes);
    }
    let mappings = file.table(mappings.into_iter(), size_of::<Mapped>());
    file.fill_page();
    for mapped in &plan.mapped {
        file.0.extend(&mapped.bytes);
        file.fill_page();
    }
    let mut header: Vec<u8> = Vec::new();
    let fields = [mappings, traps, moves, [sites_at, count], operands, predicates, others, originals];
    let words = [WATCH_MAGIC, tables].into_iter().chain(fields.into_iter().flatten());
    let words = words.chain([rest.thread_local]).chain(changes).chain(parts);
    words.for_each(|w| header.extend(w.to_le_bytes()));
    let name = rest.log.map_or(&[][..], |path| path.as_os_str().as_bytes());
    header.extend(name.get(..255).unwrap_or(name));
    file.0[..header.len()].copy_from_slice(&header);
    debug_assert!(WATCH_ADDR.is_multiple_of(PAGE));
    file.0
}

/// Empties the log, and says in a file beside it what the numbers of sites mean: number, module, address in its file.
fn write_log_key(log: &Path, watched: &Watched) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(log)?;
    let mut text = String::new();
    for module in &watched.modules {
        for (n, site) in module.sites.sites.iter().enumerate() {
            text += &format!("{} {} {:x}\n", module.first_site + n, module.name, site.at);
        }
    }
    let mut name = log.as_os_str().to_os_string();
    name.push(".sites");
    std::fs::write(name, text)
}

/// A line for each module with instructions by which the processor gives random numbers: unlike readings of its counter they cannot be trapped. Of
/// libstdc++, which all programs in C++ have, only where something else asks it.
fn random_numbers(watched: &Watched, loaded: &[Loaded]) -> Vec<String> {
    let asks = || {
        let others = loaded.iter().filter(|module| !module.name.starts_with("libstdc++"));
        let mut texts = others.filter_map(|module| std::fs::read(&module.path).ok());
        texts.any(|text| text.windows(RANDOM_DEVICE.len()).any(|part| part == RANDOM_DEVICE))
    };
    let modules = watched.modules.iter().filter(|module| !module.sites.random.is_empty());
    let counts = modules.filter(|module| !module.name.starts_with("libstdc++") || asks());
    let line = |module: &WatchedModule| {
        let all = &module.sites.random;
        let first = watched.places.locate(all[0].wrapping_add(module.bias)).function;
        let first = first.map_or_else(|| format!("at {:#x}", all[0]), |name| format!("in {name}"));
        format!(
            "{} has {} of the instructions by which the processor gives random numbers (rdrand, rdseed), the first {first}: what they decide is not the same in each execution",
            module.name,
            all.len()
        )
    };
    counts.map(line).collect()
}
