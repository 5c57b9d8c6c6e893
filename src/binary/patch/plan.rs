//! The plan: where trampolines lie, what is written where.

use std::collections::HashMap;
use std::ops::{AddAssign, Range};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use vsrun_model::watch::{Place, SLOW_PATHS};

use super::super::sites::{Reason, Sites, Unit, Unwatched, JUMP};
use super::check;
use super::emit::{distance, Buffer, Forward, Impossible};
use super::place::Slots;
use super::space::Space;

const INT3: u8 = 0xcc;
pub(super) const JMP: u8 = 0xe9;
/// A prefix that a jump ignores.
pub(super) const PREFIX: u8 = 0x2e;
/// What a trampoline takes at most for each instruction that is moved, with checks, slow paths and what surrounds it. Twice what was
/// seen.
pub(super) const PER_UNIT: u64 = 512;
/// How far trampolines lie from their module at most, and at least.
pub(super) const FAR: u64 = 1 << 30;
const NEAR: u64 = 1 << 20;

/// A module in a process.
pub struct Input<'a> {
    /// Its sites.
    pub sites: &'a Sites,
    /// What is added to the file's addresses.
    pub bias: u64,
    /// Its executable parts, address and bytes, as the process has them.
    pub text: Vec<(u64, Vec<u8>)>,
}

/// Memory to be mapped, executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Where, a whole page.
    pub at: u64,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// How the sites of a module are patched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Sites.
    pub sites: usize,
    /// Of these, those that repeat an access before them.
    pub repeated: usize,
    /// Checked: by a jump over one instruction,
    pub jump: usize,
    /// by one over a group,
    pub group: usize,
    /// inside a group besides the first,
    pub inside: usize,
    /// by a punned jump,
    pub punned: usize,
    /// by a trap.
    pub trap: usize,
    /// Bytes of trampolines.
    pub bytes: usize,
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.sites += other.sites;
        self.repeated += other.repeated;
        self.jump += other.jump;
        self.group += other.group;
        self.inside += other.inside;
        self.punned += other.punned;
        self.trap += other.trap;
        self.bytes += other.bytes;
    }
}

/// What is to be done to a process.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Memory to be mapped.
    pub mapped: Vec<Mapped>,
    /// Bytes to be written over code.
    pub writes: Vec<(u64, Vec<u8>)>,
    /// Where traps are, and where they lead; ascending.
    pub traps: Vec<Place>,
    /// Where moved instructions are, and where they were; ascending.
    pub moves: Vec<Place>,
    /// Pages of slots.
    pub slot_pages: usize,
}

/// Plans for one process.
pub struct Planner {
    pub(super) space: Space,
    pub(super) slots: Slots,
    slow: [u64; SLOW_PATHS],
    plan: Plan,
    /// Sites of the modules so far.
    sites: usize,
    form: Form,
}

/// Which patches are made. All but the first are for checking them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The best for each site.
    #[default]
    Best,
    /// No jumps over what has room for them: one instruction at a time, punned where that can be.
    Punned,
    /// Traps.
    Trapped,
}

/// A module's code while it is patched.
pub(super) struct Text(Vec<(u64, Vec<u8>)>);

impl Text {
    /// So many bytes from there, if they are all in one part.
    pub fn at(&self, address: u64, length: usize) -> Option<&[u8]> {
        let (start, bytes) =
            self.0.iter().find(|(start, bytes)| (*start..start + bytes.len() as u64).contains(&address))?;
        let from = (address - start) as usize;
        bytes.get(from..from.checked_add(length)?)
    }

    /// Writes there.
    pub fn write(&mut self, address: u64, new: &[u8]) {
        let inside = |(start, bytes): &&mut (u64, Vec<u8>)| (*start..*start + bytes.len() as u64).contains(&address);
        if let Some((start, bytes)) = self.0.iter_mut().find(inside) {
            let from = (address - *start) as usize;
            if let Some(old) = bytes.get_mut(from..from + new.len()) {
                old.copy_from_slice(new);
            }
        }
    }
}

/// A module that is being planned.
pub(super) struct Module<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) text: Text,
    buffer: Buffer,
    table: u64,
    first_id: usize,
    statistics: Statistics,
    moves: Vec<Place>,
    unwatched: Vec<Unwatched>,
    /// By place of a jump that has been written: bytes that are its own, and the trampoline to which it leads.
    pub(super) jumps: HashMap<u64, (usize, u64)>,
}

impl Planner {
    /// For a process with these free addresses, whose slow paths lie there.
    pub fn new(space: Space, slow: [u64; SLOW_PATHS], form: Form) -> Planner {
        Planner { space, slots: Slots::default(), slow, plan: Plan::default(), sites: 0, form }
    }

    /// Plans a module, whose trampolines go to `place`; its sites have the numbers that follow those of the modules before. Says how
    /// each is patched, and what could not be.
    fn module(&mut self, input: &Input, place: Option<u64>) -> (Statistics, Vec<Unwatched>) {
        let first_id = self.sites;
        self.sites += input.sites.sites.len();
        let Some(base) = place else {
            let whole = input.text.iter().map(|(start, bytes)| Unwatched {
                at: start.wrapping_sub(input.bias),
                length: bytes.len() as u64,
                reason: Reason::NoRoom,
            });
            return (Statistics::default(), whole.collect());
        };
        let mut buffer = Buffer::new(base);
        self.slow.iter().for_each(|address| buffer.raw(&address.to_le_bytes()));
        let (text, table) = (Text(input.text.clone()), base);
        let (statistics, moves, unwatched, jumps) = Default::default();
        let mut module = Module { input, text, buffer, table, first_id, statistics, moves, unwatched, jumps };
        let later = module.jumps(self.form);
        module.puns(later, self);
        module.statistics.sites = input.sites.sites.len();
        module.statistics.repeated = module.statistics.sites - input.sites.checked();
        module.statistics.bytes = module.buffer.len();
        self.plan.writes.extend(changes(&input.text, &module.text.0));
        self.plan.moves.append(&mut module.moves);
        let bytes = module.buffer.into_bytes();
        debug_assert!(bytes.len() as u64 <= PER_UNIT * (input.sites.units.len() as u64 + 8));
        self.plan.mapped.push(Mapped { at: base, bytes });
        (module.statistics, module.unwatched)
    }

    /// Where the module's trampolines go.
    fn place(&mut self, input: &Input) -> Option<u64> {
        let low = input.text.iter().map(|(start, _)| *start).min()?;
        let high = input.text.iter().map(|(start, bytes)| start + bytes.len() as u64).max()?;
        let length = PER_UNIT * (input.sites.units.len() as u64 + 8);
        let below = self.space.highest(low.saturating_sub(FAR)..low.saturating_sub(NEAR), length);
        // Above a program lies its heap, which grows.
        let base = below.or_else(|| self.space.lowest(high + FAR + FAR / 4..low + 2 * FAR - FAR / 8, length))?;
        self.space.take(base..base + length);
        Some(base)
    }

    /// The whole plan.
    pub fn finish(mut self) -> Plan {
        self.plan.slot_pages = self.slots.pages();
        self.plan.mapped.extend(self.slots.into_mapped().into_iter().map(|(at, bytes)| Mapped { at, bytes }));
        self.plan.traps.sort_by_key(|place| place.at);
        self.plan.moves.sort_by_key(|place| place.at);
        self.plan
    }
}

/// The stretches in which `new` differs from `old`.
fn changes(old: &[(u64, Vec<u8>)], new: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    /// Bytes in between that are rather written too.
    const GAP: usize = 64;
    let mut found = Vec::new();
    for ((start, old), (_, new)) in old.iter().zip(new) {
        let mut open: Option<Range<usize>> = None;
        for n in (0..old.len().min(new.len())).filter(|&n| old[n] != new[n]) {
            match &mut open {
                Some(range) if n < range.end + GAP => range.end = n + 1,
                _ => {
                    found.extend(open.take().map(|range| (start + range.start as u64, new[range].to_vec())));
                    open = Some(n..n + 1);
                }
            }
        }
        found.extend(open.map(|range| (start + range.start as u64, new[range].to_vec())));
    }
    found
}

impl Module<'_> {
    /// Decodes the instructions of a unit, at their addresses in the process.
    pub(super) fn decode(&self, unit: &Unit) -> Option<Vec<Instruction>> {
        const LONGEST: usize = 15;
        let at = unit.at.wrapping_add(self.input.bias);
        let most = LONGEST * usize::from(unit.count);
        let (start, bytes) = self.input.text.iter().find(|(s, b)| (*s..s + b.len() as u64).contains(&at))?;
        let from = (at - start) as usize;
        let bytes = &bytes[from..bytes.len().min(from + most)];
        let decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let code: Vec<Instruction> = decoder.into_iter().take(usize::from(unit.count)).collect();
        (code.len() == usize::from(unit.count) && code.iter().all(|i| !i.is_invalid())).then_some(code)
    }

    /// Patches what has room for a jump; gives the others, each an instruction of its own.
    fn jumps(&mut self, form: Form) -> Vec<Unit> {
        let mut later = Vec::new();
        for unit in &self.input.sites.units {
            let jump = usize::from(unit.room) >= JUMP && form == Form::Best;
            match if jump { self.move_unit(unit) } else { Err(Impossible) } {
                Ok((to, sites)) => {
                    let at = unit.at.wrapping_add(self.input.bias);
                    let Some(distance) = distance(at + JUMP as u64, to) else { continue };
                    let mut bytes = vec![INT3; usize::from(unit.room)];
                    bytes[0] = JMP;
                    bytes[1..JUMP].copy_from_slice(&distance.to_le_bytes());
                    self.text.write(at, &bytes);
                    self.jumps.insert(at, (bytes.len(), to));
                    let first = if unit.count == 1 { &mut self.statistics.jump } else { &mut self.statistics.group };
                    *first += 1;
                    self.statistics.inside += sites - 1;
                }
                Err(Impossible) => later.extend(self.singles(unit)),
            }
        }
        later
    }

    /// The sites of a unit one by one.
    fn singles(&mut self, unit: &Unit) -> Vec<Unit> {
        let Some(code) = self.decode(unit) else {
            self.unwatched.push(Unwatched { at: unit.at, length: unit.room.into(), reason: Reason::Undecodable });
            return Vec::new();
        };
        let bias = self.input.bias;
        let own = code.iter().map(|i| Unit { at: i.ip().wrapping_sub(bias), count: 1, room: i.len() as u8 });
        own.filter(|unit| self.input.sites.at(unit.at).is_some_and(|(_, site)| !site.repeated)).collect()
    }

    /// The code that trampolines have so far, to forget what comes then.
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.buffer.len(), self.moves.len())
    }

    /// Forgets all of the trampolines that came after that mark.
    pub(super) fn forget(&mut self, (length, moves): (usize, usize)) {
        self.buffer.truncate(length);
        self.moves.truncate(moves);
    }

    /// Moves a unit to a trampoline: where, and how many sites it checks.
    pub(super) fn move_unit(&mut self, unit: &Unit) -> Result<(u64, usize), Impossible> {
        let code = self.decode(unit).ok_or(Impossible)?;
        let (at, before) = (self.buffer.here(), self.mark());
        let result = self.emit(&code);
        if result.is_err() {
            self.forget(before);
        }
        result.map(|sites| (at, sites))
    }

    fn emit(&mut self, code: &[Instruction]) -> Result<usize, Impossible> {
        let (mut slow, mut sites) = (Vec::new(), 0);
        let mut constant: Option<(Forward, u64)> = None;
        for i in code {
            let found = self.input.sites.at(i.ip().wrapping_sub(self.input.bias)).filter(|(_, site)| !site.repeated);
            if let Some((n, site)) = found {
                let id = (self.first_id + n) as u32;
                slow.extend(check::emit(&mut self.buffer, site, id, self.table, self.input.bias)?);
                sites += 1;
            }
            self.moves.push(Place { at: self.buffer.here(), to: i.ip() });
            if i.flow_control() == FlowControl::IndirectCall {
                constant = Some((self.call(i)?, i.next_ip()));
            } else {
                self.buffer.copy(i)?;
            }
        }
        if let Some(last) = code.last().filter(|last| goes_on(last)) {
            self.buffer.relative(&[JMP], last.next_ip())?;
        }
        for path in slow {
            path.emit(&mut self.buffer, self.table)?;
        }
        if let Some((jump, value)) = constant {
            self.buffer.lands(jump);
            self.buffer.raw(&value.to_le_bytes());
        }
        Ok(sites)
    }

    /// A call through memory: pushes the address behind it where it was, and jumps.
    fn call(&mut self, i: &Instruction) -> Result<Forward, Impossible> {
        let uses_stack = i.memory_base() == iced_x86::Register::RSP;
        if i.code() != Code::Call_rm64 || uses_stack {
            return Err(Impossible);
        }
        let constant = self.buffer.forward(&[0xff, 0x35]); // push [rip + ..]
        let mut jump = *i;
        jump.set_code(Code::Jmp_rm64);
        self.buffer.instruction(&jump)?;
        Ok(constant)
    }

    /// Patches single instructions without room for a jump, from the last to the first: the bytes that a punned jump shares with what
    /// follows have their last form by then.
    fn puns(&mut self, later: Vec<Unit>, planner: &mut Planner) {
        for unit in later.iter().rev() {
            let at = unit.at.wrapping_add(self.input.bias);
            let Ok((to, _)) = self.move_unit(unit) else {
                self.unwatched.push(Unwatched { at: unit.at, length: unit.room.into(), reason: Reason::Fixed });
                continue;
            };
            let length = usize::from(unit.room);
            let jumps = |module: &mut Self, planner: &mut Planner| {
                module.pun(at, length, to, planner).or_else(|| module.evict(at, length, to, planner))
            };
            if planner.form != Form::Trapped && jumps(self, planner).is_some() {
                self.statistics.punned += 1;
            } else {
                self.text.write(at, &[INT3]);
                planner.plan.traps.push(Place { at, to });
                self.statistics.trap += 1;
            }
        }
    }

    /// A jump at `at` to a slot, with as many prefixes as it takes for the bytes behind the instruction to lead to a free place.
    fn pun(&mut self, at: u64, length: usize, to: u64, planner: &mut Planner) -> Option<()> {
        for prefixes in 0..length.min(JUMP) {
            let own = (length - 1 - prefixes).min(4);
            let behind = at + (prefixes + JUMP) as u64;
            let shared = self.text.at(at + length as u64, 4 - own)?;
            let mut bytes = [0; 4];
            bytes[own..].copy_from_slice(shared);
            let first = behind.wrapping_add(i64::from(i32::from_le_bytes(bytes)) as u64);
            // Of four bytes of its own the sign is one too.
            let within =
                if own == 4 { at.saturating_sub(FAR)..at + FAR } else { first..first.wrapping_add(1 << (8 * own)) };
            let Some(slot) = planner.slots.add(&mut planner.space, within, to) else { continue };
            let Some(distance) = distance(behind, slot) else { continue };
            let mut jump = vec![PREFIX; prefixes];
            jump.push(JMP);
            jump.extend(&distance.to_le_bytes()[..own]);
            self.text.write(at, &jump);
            self.jumps.insert(at, (length, to));
            return Some(());
        }
        None
    }
}

/// Control goes on behind the instruction.
fn goes_on(i: &Instruction) -> bool {
    use FlowControl as F;
    !matches!(i.flow_control(), F::UnconditionalBranch | F::IndirectBranch | F::Return | F::IndirectCall)
        && i.mnemonic() != Mnemonic::Ud2
}

/// Plans all modules of a process at once: what to do, and how each module's sites are patched.
pub fn plan(
    inputs: &[Input],
    space: Space,
    slow: [u64; SLOW_PATHS],
    form: Form,
) -> (Plan, Vec<(Statistics, Vec<Unwatched>)>) {
    let mut planner = Planner::new(space, slow, form);
    // Slots lie scattered, a page here and there, and would leave large modules no room in between: they come after all trampolines.
    let places: Vec<_> = inputs.iter().map(|input| planner.place(input)).collect();
    let modules = inputs.iter().zip(places).map(|(input, place)| planner.module(input, place)).collect();
    (planner.finish(), modules)
}
