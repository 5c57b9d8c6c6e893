//! What is said of accesses to watched memory that nothing orders, and of what was not seen of an execution.

use std::ops::Range;
use std::path::Path;

use vsrun_model::library::FUNCTIONS;
use vsrun_model::object::SHARED;
use vsrun_model::watch::Entry;
use vsrun_model::{Key, Kind, ObjId, Op};

use super::inspect::Inspector;
use super::look::from_model;
use super::outcome::{all_conflicts, notes, Outcome};
use super::watched::Watched;
use super::worker::Worker;
use crate::base::hash::Hash;
use crate::base::text::escape;
use crate::finding::{words, BugKind, Ending, Finding, Names, People, PlaceView, RaceView, Thing, UseView, Words};
use crate::race::{Access, Claim, Conflict, Edge, Flaw, Held, Hold, Note, Overtaking, Race, Touch};
use crate::trace::Trace;

/// Uses of memory that are not reported, by addresses of the program at its root.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Quiet {
    /// Those of these variables.
    pub variables: Vec<Range<u64>>,
    /// Those by these functions.
    pub functions: Vec<Range<u64>>,
}

impl Worker {
    /// The races of an execution, a line each.
    pub fn races(&self, outcome: &Outcome) -> Vec<String> {
        let Some(watched) = &self.watched else { return Vec::new() };
        outcome.races.iter().map(|race| watched.race(race)).collect()
    }

    /// The uses of memory that what the program says forbids, a line each.
    pub fn trespasses(&self, outcome: &Outcome) -> Vec<String> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let line = |conflict: &Conflict| {
            let [first, second] = conflict.both.map(|touch| watched.claim_or_use(touch.access.site));
            format!(
                "exclusive access violated on {}: {second}, which {first} forbids",
                watched.named_place(conflict.place)
            )
        };
        outcome.trespasses.iter().map(line).collect()
    }

    /// What threads do that acquire locks in a circle.
    pub fn circle(&self, circle: &[Edge], trace: &Trace) -> String {
        let symbol = |key: &Key| {
            let places = self.watched.as_ref().map(|watched| &watched.places);
            places.filter(|_| key.space & SHARED == 0).and_then(|places| places.variable_name(key.addr))
        };
        let seen = self.people_seen(&symbol);
        let people = People::of(&seen);
        let name = |key: &Key| match trace.objects.iter().position(|object| object == key) {
            Some(id) => people.object(id as ObjId),
            None => symbol(key).unwrap_or_else(|| format!("a lock at {:#x}", key.addr)),
        };
        let edge = |edge: &Edge| {
            format!("{} acquires {} with {} held", people.mover(edge.thread), name(&edge.to), name(&edge.from))
        };
        let all: Vec<String> = circle.iter().map(edge).collect();
        all.join(", ")
    }

    /// The execution last run, with what its threads are called by.
    fn people_seen(&self, symbol: &dyn Fn(&Key) -> Option<String>) -> Finding {
        let world = &self.arena.world;
        let mut seen = from_model(world, &Trace::default(), &Ending::Modelled, symbol);
        if let Some(first) = seen.processes.first_mut() {
            let program = Path::new(&self.spec.program.exe).file_name().unwrap_or_default();
            first.program = program.to_string_lossy().into_owned();
        }
        for (view, thread) in seen.threads.iter_mut().zip(world.threads.as_slice()) {
            let is_known = thread.fiber.start != 0 && world.procs[thread.pid].execs == 0;
            let places = self.watched.as_ref().map(|watched| &watched.places).filter(|_| is_known);
            view.start = places.and_then(|places| places.locate(thread.fiber.start).function).unwrap_or_default();
        }
        seen
    }

    /// A line about a load that x86 may let come before a store, the same for the same instructions.
    pub fn overtaking(&self, pair: &Overtaking) -> Option<String> {
        let watched = self.watched.as_ref()?;
        let of = |op: &Op| match op.kind {
            Kind::MEM_READ | Kind::MEM_WRITE | Kind::MEM_WAIT => watched.instruction(op.arg as u32),
            kind => PlaceView::from(kind.row().name),
        };
        let (store, load) = (of(&pair.store), of(&pair.load));
        Some(format!(
            "no fence: the load at {load} may come before what was stored at {store} is visible to others; a fence between the two \
             (mfence, atomic_thread_fence(memory_order_seq_cst)) or a locked store (xchg, memory_order_seq_cst) forbids that"
        ))
    }

    /// The uses of memory by the execution last run that are bugs: the identity of each, and the steps of its trace that lead to both. Of the
    /// same identity the first. Not `at_once`: where nothing orders two, only if both are pending in one state.
    pub fn reported_races(&self, outcome: &Outcome, quiet: &Quiet, at_once: bool) -> Vec<(u64, Vec<usize>)> {
        let Some(watched) = self.watched.as_ref().filter(|_| !outcome.conflicts.is_empty()) else { return Vec::new() };
        let mut all: Vec<(u64, Vec<usize>)> = Vec::new();
        let counts = |c: &&Conflict| at_once || c.pending || c.flaw != Flaw::Unordered;
        for conflict in outcome.conflicts.iter().filter(counts).filter(|conflict| !watched.is_quiet(conflict, quiet)) {
            let identity = watched.identity(conflict);
            if all.iter().all(|known| known.0 != identity) {
                all.push((identity, conflict.steps(&outcome.trace, notes(&self.arena))));
            }
        }
        all
    }

    /// If the execution that stands still has the uses of memory with that identity, they are what `found` shows.
    pub(super) fn show_race(&self, identity: u64, trace: &Trace, inspector: &mut Inspector, found: &mut Finding) {
        let Some(watched) = &self.watched else { return };
        let all = all_conflicts(&self.arena, trace, &found.ending);
        let Some(conflict) = all.iter().find(|conflict| watched.identity(conflict) == identity) else { return };
        let block = block_of(conflict, notes(&self.arena));
        let mut view = watched.view(conflict, trace, block, found);
        let (space, at) = conflict.place;
        if let Some(block) = self.block_at(inspector, space, at).filter(|_| watched.is_of_heap(conflict.place)) {
            view.place = format!("a block of {} bytes of the heap, at offset {}", block.size, at - block.start);
            view.allocated = block.allocated;
        }
        found.summary = line(&watched.variable(conflict.place), watched.name_of(conflict.place).is_some(), &view);
        (found.kind, found.identity, found.race) = (Some(BugKind::Race), identity, Some(view));
    }

    /// What of the execution last run was not seen though memory is watched, if anything.
    pub fn unseen_memory(&self) -> Option<String> {
        let watched = self.watched.as_ref()?;
        if self.arena.records_lost > 0 {
            return Some("more was done to memory than vsrun can record: the rest is not looked at".into());
        }
        if self.arena.control.watching.wide > 0 {
            return Some(
                "one instruction, function of libc or system call used several words of memory that others use meanwhile, or one in several accesses, or one whose address is in memory itself: that was one step, \
                 others coming in between was not explored"
                    .into(),
            );
        }
        if let Some(name) = &watched.left_alone {
            return Some(format!("not watched: {name} (vsrun doctor PROGRAM says more)"));
        }
        if let Some((times, first)) = self.later_code() {
            return Some(format!("not watched: {first} (and what is like it, {times} times in one execution; docs/WATCHING.md says what is not watched)"));
        }
        if let Some((module, part, places)) = watched.unwatched().filter(|_| self.arena.world.concurrent) {
            return Some(format!(
                "not watched: code of {}, {places} places, the first at +{:#x}, since {} (vsrun doctor lists them)",
                escape(Path::new(&module.name)),
                part.at,
                part.reason
            ));
        }
        None
    }
}

impl Watched {
    /// The place of a site, or the function of libc, with that number.
    pub(super) fn instruction(&self, number: u32) -> PlaceView {
        if let Some(name) = Claim::name(number) {
            return Claim::at(number).map_or_else(|| name.into(), |at| self.instruction(at));
        }
        if number & Entry::FUNCTION != 0 && number & Entry::CALL != 0 {
            let name = vsrun_model::calls::name(i64::from(number & !(Entry::FUNCTION | Entry::CALL)));
            return format!("the system call {}", name.unwrap_or("?")).into();
        }
        if number & Entry::FUNCTION != 0 {
            let function = FUNCTIONS.get((number & !Entry::FUNCTION) as usize);
            return function.map_or("a function of libc", |function| function.name).into();
        }
        let site = self.site(number as usize);
        site.map_or("?".into(), |(module, at)| self.places.place(at.wrapping_add(module.bias)))
    }

    /// The same as text; what is said of who may use memory is called by its name.
    fn claim_or_use(&self, number: u32) -> String {
        match (Claim::name(number), Claim::at(number)) {
            (Some(name), Some(at)) => format!("{name} at {}", self.instruction(at)),
            _ => self.instruction(number).to_string(),
        }
    }

    /// One line about two accesses that nothing orders, the same for the same instructions and variable.
    fn race(&self, race: &Race) -> String {
        let access = |touch: &Touch| format!("{} at {}", what(&touch.access), self.instruction(touch.access.site));
        let mut both = [access(&race.first), access(&race.second)];
        both.sort();
        let at = race.second.access;
        format!("race on {}: {} and {}", self.named_place((at.space, at.address)), both[0], both[1])
    }

    /// What lies at a place, with the names of members.
    fn named_place(&self, (space, address): (u32, u64)) -> String {
        let name = (space & SHARED == 0).then(|| self.places.variable_name(address)).flatten();
        name.unwrap_or_else(|| self.place((space, address)))
    }

    /// What lies at a place, by symbols.
    fn place(&self, (space, address): (u32, u64)) -> String {
        match space & SHARED {
            // What the program has mapped since its root is of no module.
            0 if self.places.mapping(address).is_none() => "memory that the program has allocated".to_string(),
            0 => self.places.object_name(address).unwrap_or_else(|| self.places.region(address)),
            _ => "shared memory".to_string(),
        }
    }

    /// Equal for the same two instructions, the same variable and the same flaw, in all executions of a program.
    fn identity(&self, conflict: &Conflict) -> u64 {
        let mut hash = Hash::new("race");
        let unordered = conflict.flaw == Flaw::Unordered;
        hash.number(match conflict.flaw {
            Flaw::Undisciplined => 0,
            Flaw::Unordered => 1,
            Flaw::Trespass => 2,
        });
        // Which two of the uses of a variable are named depends on the order; what has no name has only these.
        if unordered || self.name_of(conflict.place).is_none() {
            let mut sites = conflict.both.map(|touch| touch.access.site);
            sites.sort_unstable();
            sites.iter().for_each(|&site| hash.number(site.into()));
        }
        hash.bytes(self.variable(conflict.place).as_bytes());
        hash.value()
    }

    fn is_quiet(&self, conflict: &Conflict, quiet: &Quiet) -> bool {
        let within = |ranges: &[Range<u64>], at: u64| ranges.iter().any(|range| range.contains(&at));
        let site = |touch: &Touch| {
            let number = touch.access.site;
            let site = (number & Entry::FUNCTION == 0).then(|| self.site(number as usize)).flatten();
            site.is_some_and(|(module, at)| within(&quiet.functions, at.wrapping_add(module.bias)))
        };
        let (space, address) = conflict.place;
        space & SHARED == 0 && within(&quiet.variables, address) || conflict.both.iter().any(site)
    }

    /// The variable that lies at a place, if one does.
    fn name_of(&self, (space, address): (u32, u64)) -> Option<String> {
        self.places.object_name(address).filter(|_| space & SHARED == 0)
    }

    /// What lies at a place, without the offset in it.
    fn variable(&self, place: (u32, u64)) -> String {
        let name = self.place(place);
        name.split("+0x").next().unwrap_or_default().to_string()
    }

    /// What lies there is of no module, and no other process has it.
    fn is_of_heap(&self, (space, address): (u32, u64)) -> bool {
        space & SHARED == 0 && self.places.mapping(address).is_none()
    }

    /// For the report; `block`: of the heap, in words.
    fn view(&self, conflict: &Conflict, trace: &Trace, block: Option<String>, found: &Finding) -> RaceView {
        let place =
            block.filter(|_| self.is_of_heap(conflict.place)).unwrap_or_else(|| self.named_place(conflict.place));
        let uses = conflict.both.map(|touch| self.use_of(&touch, conflict.pending, trace, found));
        let (unordered, trespass) = (conflict.flaw == Flaw::Unordered, conflict.flaw == Flaw::Trespass);
        RaceView { place, word: conflict.word(), unordered, trespass, allocated: None, uses }
    }

    fn use_of(&self, touch: &Touch, pending: bool, trace: &Trace, found: &Finding) -> UseView {
        let at = self.instruction(touch.access.site);
        let thread = found.threads.get(touch.thread as usize);
        let held = || Held::after(trace, touch.made as usize).of(touch.thread).into_iter().map(hold).collect();
        let holds = match thread {
            Some(thread) if pending => thread.holds.clone(),
            _ => held(),
        };
        let frames = thread.map_or(&[][..], |thread| &thread.frames);
        let frames = if pending && !frames.is_empty() { frames.to_vec() } else { around(&at, frames) };
        let step = touch.step.map(|step| step as usize);
        UseView { thread: touch.thread, what: what(&touch.access), at, step, pending, holds, frames }
    }
}

/// What is done, without where.
fn what(access: &Access) -> String {
    if let Some(name) = Claim::name(access.site) {
        let of = if Claim::at(access.site).is_some() { format!(" ({name} by --annotations)") } else { String::new() };
        return format!("claim to {} bytes{of}", access.size);
    }
    let verb = match (access.write, access.locked) {
        (true, true) => "atomic update",
        (true, false) => "write",
        (false, _) => "read",
    };
    let bytes = if access.size == 1 { "byte" } else { "bytes" };
    format!("{verb} of {} {bytes}", access.size)
}

fn hold(hold: Hold) -> Words {
    words![Thing::Object(hold.lock), if hold.shared { " (for reading)" } else { "" }]
}

/// The call stack of the instruction `at`, where its function is still among the `frames` of a thread that has gone on to its next operation;
/// otherwise that alone.
fn around(at: &PlaceView, frames: &[PlaceView]) -> Vec<PlaceView> {
    let function = |frame: &PlaceView| frame.symbol.split('+').next().unwrap_or_default().to_string();
    let outer = frames.iter().position(|frame| function(frame) == function(at)).map_or(&[][..], |n| &frames[n + 1..]);
    [at.clone()].into_iter().chain(outer.iter().cloned()).collect()
}

/// The block of the heap in which a conflict lies, if it was given out while there were several threads.
fn block_of(conflict: &Conflict, notes: impl Iterator<Item = Note>) -> Option<String> {
    let (space, at) = conflict.place;
    let mut block = None;
    for note in notes {
        match note {
            Note::Anew { space: s, address, size, .. } if s == space && (address..address + size).contains(&at) => {
                block = Some((address, size));
            }
            Note::Step { index } if index >= conflict.both[1].made => break,
            _ => {}
        }
    }
    let (start, size) = block?;
    Some(format!("a block of {size} bytes of the heap, at offset {}", at - start))
}

/// The line about two uses of memory: the same whichever execution shows them. `named`: what they use is a variable.
fn line(variable: &str, named: bool, view: &RaceView) -> Words {
    let mut both = [&view.uses[0].at, &view.uses[1].at].map(ToString::to_string);
    both.sort();
    match view.unordered {
        false if view.trespass && named => format!("exclusive access violated on {variable}").into(),
        false if view.trespass => {
            format!("exclusive access violated on {variable}: {} and {}", both[0], both[1]).into()
        }
        true => format!("race on {variable}: {} and {}", both[0], both[1]).into(),
        false if named => format!("locking discipline violated on {variable}: no lock is held at all its uses").into(),
        false => format!("locking discipline violated on {variable}: {} and {}", both[0], both[1]).into(),
    }
}
