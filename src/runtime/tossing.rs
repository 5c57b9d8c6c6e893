//! Functions of the program that return a choice (`--toss`): at the root a jump is put at the entry of each, to a stub that hands its number
//! to the shim, which tosses. Executions are forked from the root and inherit all of it. Before memory is watched, since patches share
//! bytes with the code that follows them.

use std::io;
use std::ops::Range;
use std::path::Path;

use vsrun_model::arena::Command;
use vsrun_model::toss::MAX_TOSSES;
use vsrun_model::watch::Place;

use super::memory::ProcessMemory;
use super::named::functions_named;
use super::setup::StartError;
use super::tossed::{Patch, Tossed};
use super::watching::space;
use super::worker::Worker;
use crate::base::text::escape;
use crate::binary::entries::{Functions, LONGEST};
use crate::binary::modules::Module;
use crate::binary::patch::distance;
use crate::binary::{Modules, SymbolCache};
use crate::scenario::Toss;

const PAGE: u64 = 4096;
/// Bytes of a stub.
const STUB: u64 = 32;
/// Bytes of a jump with a distance of 32 bits, and of one with 8.
const JUMP: usize = 5;
const SHORT_JUMP: usize = 2;
/// How far a page of stubs lies from its functions at most: they may be of a module of that size again.
const FAR: u64 = 1 << 30;

/// A function to be replaced.
struct Entry {
    toss: Toss,
    at: u64,
    place: String,
    is_split: bool,
    jump: Jump,
}

impl Entry {
    /// The bytes that are written over.
    fn ranges(&self) -> Vec<Range<u64>> {
        let part = |at: u64, length: usize| at..at + length as u64;
        match self.jump {
            Jump::Here => vec![part(self.at, JUMP)],
            Jump::Over(gap) => vec![part(gap, JUMP), part(self.at, SHORT_JUMP)],
            Jump::Trap => vec![part(self.at, 1)],
        }
    }

    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.ranges().iter().any(|own| own.start < range.end && range.start < own.end)
    }
}

/// How its entry is left.
enum Jump {
    Here,
    /// By way of another place with more room.
    Over(u64),
    /// By a trap, which the shim answers.
    Trap,
}

impl Worker {
    /// The functions that return a choice.
    pub fn tossed(&self) -> &[Tossed] {
        &self.tossed
    }

    /// Which of them the execution last run has called, a bit for each, in their order.
    pub fn tosses_called(&self) -> u64 {
        self.arena.control.tossing.called
    }

    /// Programs and libraries that came later in the execution last run, and have functions of their own: the first.
    pub fn own_functions(&self) -> Option<String> {
        use std::os::unix::ffi::OsStrExt;
        let tossing = &self.arena.control.tossing;
        let end = tossing.name.iter().position(|&b| b == 0).unwrap_or(0);
        (tossing.later > 0).then(|| escape(Path::new(std::ffi::OsStr::from_bytes(&tossing.name[..end]))))
    }

    /// Replaces the functions that are to return a choice, in the program, which stands at its root.
    pub(super) fn replace_functions(&mut self) -> Result<(), StartError> {
        if self.spec.options.tosses.is_empty() {
            return Ok(());
        }
        let memory = ProcessMemory::open(self.root).map_err(io::Error::other)?;
        let maps = std::fs::read(format!("/proc/{}/maps", self.root))?;
        let modules = Modules::parse(&maps, &mut SymbolCache::new());
        let mut entries = Vec::new();
        for toss in &self.spec.options.tosses {
            entries_of(toss, &modules, &memory, &mut entries)?;
        }
        distinct(&entries)?;
        let mut space = space(&maps);
        let mut stubs = Stubs { page: 0..0, next: 0 };
        for (number, entry) in entries.into_iter().enumerate() {
            if !stubs.reaches(entry.at) {
                let near = entry.at.saturating_sub(FAR)..entry.at.saturating_add(FAR);
                let at = space.highest(near, PAGE).ok_or_else(|| refused(&entry.toss, "there is no room near it"))?;
                self.map_room(at)?;
                space.take(at..at + PAGE);
                stubs = Stubs { page: at..at + PAGE, next: at };
            }
            let stub = stubs.take();
            memory.write(stub, &stub_code(number, self.arena.control.tossing.entry)).map_err(io::Error::other)?;
            let patches = patches(&entry, stub).ok_or_else(|| refused(&entry.toss, "it is too far away"))?;
            for patch in &patches {
                memory.write(patch.at, &patch.bytes).map_err(io::Error::other)?;
            }
            let tossing = &mut self.arena.control.tossing;
            if matches!(entry.jump, Jump::Trap) {
                tossing.traps[number] = Place { at: entry.at, to: stub };
            }
            tossing.most[number] = entry.toss.most;
            tossing.count = number as u32 + 1;
            let Entry { toss, place, is_split, .. } = entry;
            self.tossed.push(Tossed { toss, place, is_split, patches });
        }
        match self.tossed.iter().any(Tossed::traps) {
            true => self.ask_root(Command::TRAPS),
            false => Ok(()),
        }
    }

    /// Lets the root map a page for code.
    fn map_room(&mut self, at: u64) -> Result<(), StartError> {
        self.arena.control.tossing.page = at as i64;
        self.ask_root(Command::ROOM)?;
        match self.arena.control.tossing.page {
            1 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error as i32).into()),
        }
    }
}

/// A page of stubs.
struct Stubs {
    page: Range<u64>,
    next: u64,
}

impl Stubs {
    fn reaches(&self, at: u64) -> bool {
        self.next + STUB <= self.page.end && at.abs_diff(self.next) < 2 * FAR - PAGE
    }

    fn take(&mut self) -> u64 {
        self.next += STUB;
        self.next - STUB
    }
}

/// Pushes the number and jumps to `entry`.
fn stub_code(number: usize, entry: u64) -> Vec<u8> {
    let mut code = vec![0x68];
    code.extend((number as u32).to_le_bytes());
    code.extend([0xff, 0x25, 0, 0, 0, 0]);
    code.extend(entry.to_le_bytes());
    code
}

fn jump(at: u64, to: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0xe9];
    bytes.extend(distance(at + JUMP as u64, to)?.to_le_bytes());
    Some(bytes)
}

/// How far a short jump at `at` is from `to`.
fn short_distance(at: u64, to: u64) -> Option<i8> {
    i8::try_from(to.wrapping_sub(at + SHORT_JUMP as u64) as i64).ok()
}

fn patches(entry: &Entry, stub: u64) -> Option<Vec<Patch>> {
    let whole = |at: u64| Some(Patch { at, bytes: jump(at, stub)? });
    match entry.jump {
        Jump::Here => Some(vec![whole(entry.at)?]),
        Jump::Over(gap) => {
            let bytes = vec![0xeb, short_distance(entry.at, gap)? as u8];
            Some(vec![whole(gap)?, Patch { at: entry.at, bytes }])
        }
        Jump::Trap => Some(vec![Patch { at: entry.at, bytes: vec![0xcc] }]),
    }
}

fn refused(toss: &Toss, why: &str) -> StartError {
    StartError::Refused(format!("--toss {}:{}: {why}", toss.function, toss.most))
}

/// The functions that a name stands for.
fn entries_of(
    toss: &Toss,
    modules: &Modules,
    memory: &ProcessMemory,
    entries: &mut Vec<Entry>,
) -> Result<(), StartError> {
    for (module, functions) in functions_named(&toss.function, modules).map_err(|why| refused(toss, &why))? {
        for &(start, _) in &functions.named().whole {
            let new = entry(toss, module, &functions, (start, modules), (memory, entries))?;
            entries.push(new);
        }
    }
    Ok(())
}

fn entry(
    toss: &Toss,
    module: &Module,
    functions: &Functions,
    (start, modules): (u64, &Modules),
    (memory, before): (&ProcessMemory, &[Entry]),
) -> Result<Entry, StartError> {
    let at = start.wrapping_add(module.bias);
    // As many bytes as there are in the same mapping.
    let code = |address: u64, length: usize| {
        let at = address.wrapping_add(module.bias);
        let mapping = modules.mapping(at).filter(|m| m.is_executable());
        let there = mapping.map_or(0, |m| (m.end - at).min(length as u64) as usize);
        let mut bytes = vec![0; there];
        if memory.read(at, &mut bytes).is_err() {
            bytes.clear();
        }
        bytes
    };
    let bytes = code(start, LONGEST);
    let near = start.saturating_sub(100)..start + 100;
    let jump = match functions.room(start, &bytes) {
        JUMP.. => Jump::Here,
        SHORT_JUMP.. => {
            let mut gaps = functions.gaps(near, JUMP, &code).map(|gap| gap.wrapping_add(module.bias));
            let is_free = |gap: u64| !before.iter().any(|entry| entry.overlaps(&(gap..gap + JUMP as u64)));
            let gap = gaps.find(|&gap| short_distance(at, gap).is_some() && is_free(gap));
            gap.map_or(Jump::Trap, Jump::Over)
        }
        _ => Jump::Trap,
    };
    let is_split = functions.named().is_split;
    let name = modules.locate(at).function.unwrap_or_else(|| toss.function.clone());
    let place = format!("{} ({})", escape(&name), escape(module.name()));
    Ok(Entry { toss: toss.clone(), at, place, is_split, jump })
}

/// No function is replaced twice, and none uses the room of another.
fn distinct(entries: &[Entry]) -> Result<(), StartError> {
    if entries.len() > MAX_TOSSES {
        return Err(StartError::Refused(format!("--toss: more than {MAX_TOSSES} functions")));
    }
    for (n, entry) in entries.iter().enumerate() {
        let mut before = entries[..n].iter();
        if let Some(same) = before.find(|other| other.ranges().iter().any(|range| entry.overlaps(range))) {
            let why = format!("'{}' is the same function, or needs the same room", same.toss.function);
            return Err(refused(&entry.toss, &why));
        }
    }
    Ok(())
}
