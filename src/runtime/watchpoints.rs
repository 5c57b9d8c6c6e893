//! `--watch`: the debug registers of the processes of an execution that is traced, and what they see.
//!
//! NOTE [After] The processor stops behind an instruction that has used a watched address. So what was there before is what was there
//! at the last stop: where that is something else, it has changed in between by no instruction of the program's.
//! NOTE [Processes] Debug registers are a thread's own, and neither fork nor exec keeps them: each process gets them where it stops for
//! the first time. In memory that processes share the last value is that of all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess};
use nix::unistd::Pid;
use vsrun_model::watch::Place;
use vsrun_model::Arena;

use super::memory::ProcessMemory;
use super::session::SHIM_NAME;
use super::setup::StartError;
use super::tracee::{Stopped, TraceError};
use super::unwind::{Regs, Unwinder};
use crate::base::text::escape;
use crate::binary::{Location, Modules, SymbolCache};
use crate::config::Point;
use crate::finding::{PlaceView, Touched, Use};

/// Debug registers for addresses.
const REGISTERS: usize = 4;
/// Uses that are kept of one execution.
const MOST: usize = 10_000;
/// Frames that are looked through for one of the program's.
const FRAMES: usize = 32;

/// What one debug register watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    address: u64,
    size: u8,
    name: String,
}

/// The pieces to be watched, and what was seen of them in the present execution.
#[derive(Default)]
pub(super) struct Watchpoints {
    pieces: Vec<Piece>,
    /// Processes that have their registers set.
    armed: BTreeSet<i32>,
    /// What was there at last, by piece and process; 0: all processes.
    values: BTreeMap<(usize, i32), u64>,
    seen: Vec<Touched>,
    lost: u64,
    /// Programs that were executed, in which nothing is watched.
    programs: u64,
    symbols: SymbolCache,
    unwinder: Unwinder,
}

/// The uses of one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watchlist {
    /// In their order.
    pub seen: Vec<Touched>,
    /// Further ones, that were not kept.
    pub lost: u64,
    /// Programs that were executed, in which nothing is watched.
    pub programs: u64,
}

/// Aligned parts of 8, 4, 2, 1 bytes that make up `size` bytes at `address`.
fn split(address: u64, size: u64) -> Vec<(u64, u8)> {
    let (mut at, end) = (address, address.saturating_add(size));
    let mut parts = Vec::new();
    while at < end && parts.len() <= REGISTERS {
        let part =
            [8u8, 4, 2, 1].into_iter().find(|&n| at % u64::from(n) == 0 && at + u64::from(n) <= end).unwrap_or(1);
        parts.push((at, part));
        at += u64::from(part);
    }
    parts
}

/// What the points come to in a process with these modules.
pub(super) fn pieces(points: &[Point], modules: &Modules) -> Result<Vec<Piece>, StartError> {
    let mut all: Vec<Piece> = Vec::new();
    for point in points {
        let refused = |why: &str| Err(StartError::Refused(format!("--watch {point}: {why}")));
        let found = modules.objects_named(&point.symbol);
        if found.is_empty() {
            return refused("the program and its libraries have no variable of that name that threads share");
        }
        for (start, size) in found {
            let Some(rest) = size.checked_sub(point.offset).filter(|rest| *rest > 0) else {
                return refused(&format!("the variable has {size} bytes"));
            };
            let length = point.length.unwrap_or(rest);
            if length > rest {
                return refused(&format!("the variable has {rest} bytes from there on"));
            }
            for (address, size) in split(start + point.offset, length) {
                let name = match address - start {
                    0 => point.symbol.clone(),
                    offset => format!("{}+{offset:#x}", point.symbol),
                };
                let piece = Piece { address, size, name };
                if !all.contains(&piece) {
                    all.push(piece);
                }
            }
        }
    }
    match all.len() > REGISTERS {
        true => Err(StartError::Refused(format!(
            "--watch: there are {REGISTERS} debug registers of 8 aligned bytes at most, and this takes more; say SYMBOL+OFFSET:LEN"
        ))),
        false => Ok(all),
    }
}

/// DR7 for these pieces: each enabled, at reads and writes, with its length.
fn control(pieces: &[Piece]) -> u64 {
    const READS_AND_WRITES: u64 = 3;
    let of = |(n, piece): (usize, &Piece)| {
        let length = match piece.size {
            1 => 0,
            2 => 1,
            4 => 3,
            _ => 2u64,
        };
        1 << (2 * n) | (READS_AND_WRITES | length << 2) << (16 + 4 * n)
    };
    pieces.iter().enumerate().map(of).fold(0, |all, bits| all | bits)
}

impl Watchpoints {
    pub fn new(pieces: Vec<Piece>) -> Watchpoints {
        Watchpoints { pieces, ..Watchpoints::default() }
    }

    pub fn is_on(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// A new execution begins.
    pub fn begin(&mut self) {
        self.armed.clear();
        self.values.clear();
        self.seen.clear();
        (self.lost, self.programs) = (0, 0);
    }

    /// What was seen since it began.
    pub fn take(&mut self) -> Watchlist {
        Watchlist { seen: std::mem::take(&mut self.seen), lost: self.lost, programs: self.programs }
    }

    /// A process of the execution stands still: it gets its registers, if it has none.
    pub fn arm(&mut self, stopped: &Stopped) -> io::Result<()> {
        let pid = stopped.pid().as_raw();
        if !self.is_on() || !self.armed.insert(pid) {
            return Ok(());
        }
        for (n, piece) in self.pieces.iter().enumerate() {
            stopped.set_debug_register(n, piece.address).map_err(unsettled)?;
        }
        stopped.set_debug_register(7, control(&self.pieces)).map_err(unsettled)?;
        let maps = std::fs::read(format!("/proc/{pid}/maps"))?;
        let modules = Modules::parse(&maps, &mut self.symbols);
        for n in 0..self.pieces.len() {
            let piece = &self.pieces[n];
            let shared = modules.mapping(piece.address).is_some_and(|m| m.perms.ends_with('s'));
            if let Some(value) = value(stopped.pid(), piece).filter(|_| !shared || !self.values.contains_key(&(n, 0))) {
                self.values.insert((n, if shared { 0 } else { pid }), value);
            }
        }
        Ok(())
    }

    /// The process executes another program: its variables are not those.
    pub fn forget(&mut self, stopped: &Stopped) {
        let pid = stopped.pid().as_raw();
        if self.is_on() {
            // It stays without registers.
            self.armed.insert(pid);
            self.values.retain(|(_, process), _| *process != pid);
            self.programs += 1;
        }
    }

    /// True if the process stopped because of a watched address, which is noted then.
    pub fn sees(&mut self, stopped: &Stopped, arena: &Arena, moves: &[Place]) -> io::Result<bool> {
        const TRAP_HWBKPT: i32 = 4;
        let trapped = |info: libc::siginfo_t| info.si_signo == libc::SIGTRAP && info.si_code == TRAP_HWBKPT;
        if !self.is_on() || !stopped.siginfo().is_ok_and(trapped) {
            return Ok(false);
        }
        let status = stopped.debug_register(6).map_err(unsettled)?;
        stopped.set_debug_register(6, 0).map_err(unsettled)?;
        let hit: Vec<usize> = (0..self.pieces.len()).filter(|n| status & 1 << n != 0).collect();
        let place = self.place(stopped, moves)?;
        for n in hit {
            self.note(stopped, arena, n, &place);
        }
        Ok(true)
    }

    fn note(&mut self, stopped: &Stopped, arena: &Arena, n: usize, at: &Stood) {
        let (pid, piece) = (stopped.pid(), self.pieces[n].clone());
        let Some(new) = value(pid, &piece) else { return };
        let key = if self.values.contains_key(&(n, 0)) { (n, 0) } else { (n, pid.as_raw()) };
        let old = self.values.insert(key, new).unwrap_or(new);
        // What vsrun reads for itself is nothing that the program does.
        if at.own && old == new {
            return;
        }
        let does = match at.does {
            _ if at.own => Use::Change,
            Some(does) => does,
            None if new != old => Use::Write,
            None => Use::Use,
        };
        let process = arena.world.procs.as_slice().iter().rposition(|p| p.own.real_pid == pid.as_raw()).unwrap_or(0);
        let mut threads = arena.world.threads.as_slice().iter();
        let own = threads.find(|t| t.alive() && t.pid == process as u32 && t.fiber.fs == at.fs);
        let thread = own.or_else(|| arena.world.threads.get(arena.world.current));
        let touched = Touched {
            variable: piece.name,
            size: piece.size,
            thread: thread.map_or(vsrun_model::Uid::MAIN, |t| t.uid),
            process: process as u32,
            step: arena.trace().len() as u64 + arena.unrecorded,
            does,
            old,
            new,
            place: at.place.clone(),
        };
        match does {
            // Who reads finds what somebody else has made of it.
            Use::Read if old != new => {
                let place = "no instruction of the program".into();
                self.keep(Touched { does: Use::Change, place, ..touched.clone() });
                self.keep(Touched { old: new, ..touched });
            }
            _ => self.keep(touched),
        }
    }

    fn keep(&mut self, touched: Touched) {
        if let Some(last) = self.seen.last_mut().filter(|last| goes_on(last, &touched)) {
            last.new = touched.new;
        } else if self.seen.len() < MOST {
            self.seen.push(touched);
        } else {
            self.lost += 1;
        }
    }

    /// The instruction behind which the process stands.
    fn place(&mut self, stopped: &Stopped, moves: &[Place]) -> io::Result<Stood> {
        let pid = stopped.pid();
        let regs = stopped.regs().map_err(io::Error::other)?;
        let maps = std::fs::read(format!("/proc/{pid}/maps"))?;
        let modules = Modules::parse(&maps, &mut self.symbols);
        let memory = ProcessMemory::open(pid).map_err(io::Error::other)?;
        let used = before(&memory, &modules, regs.rip, moves);
        let at = used.as_ref().map_or(regs.rip.saturating_sub(1), |used| used.0);
        let location = modules.locate(at);
        let own = location.module.starts_with(SHIM_NAME);
        let below = |l: &Location| {
            l.module.starts_with(SHIM_NAME) || l.module.starts_with("libc.so") || l.module.starts_with("ld-linux")
        };
        let mut place = modules.shown(&location);
        if below(&location) {
            let stack = self.unwinder.backtrace(modules.mappings(), &memory, Regs::from(&regs), FRAMES);
            let outer = |stack: &[u64]| stack.iter().map(|&pc| modules.locate_return(pc)).find(|l| !below(l));
            let caller = outer(stack.get(1..).unwrap_or_default()).or_else(|| {
                // A routine in assembly that has no frame.
                let mut regs = Regs::from(&regs);
                regs.rip = memory.read_u64(regs.general[7]).ok()?;
                regs.general[7] += 8;
                outer(&self.unwinder.backtrace(modules.mappings(), &memory, regs, FRAMES))
            });
            let function = location.function.filter(|_| !own).map(|f| format!("{}, called before ", escape(&f)));
            let before = function.unwrap_or("a call before ".into());
            place = caller.map_or(place, |caller| modules.shown(&caller).behind(before));
        }
        Ok(Stood { place, does: used.and_then(|used| does(&used.1)), own, fs: regs.fs_base })
    }
}

/// vsrun writes byte by byte what one call gives.
fn goes_on(last: &Touched, next: &Touched) -> bool {
    let same =
        (&last.variable, last.thread, last.step, last.does) == (&next.variable, next.thread, next.step, next.does);
    same && last.does == Use::Change && last.place == next.place && last.new == next.old
}

/// Where a process stands.
struct Stood {
    place: PlaceView,
    /// What the instruction does to memory, if that is known.
    does: Option<Use>,
    /// It is vsrun's library.
    own: bool,
    /// The thread pointer.
    fs: u64,
}

fn unsettled(e: TraceError) -> io::Error {
    io::Error::other(format!("environment: debug registers cannot be used (--watch): {e}"))
}

fn value(pid: Pid, piece: &Piece) -> Option<u64> {
    let mut bytes = [0; 8];
    let memory = ProcessMemory::open(pid).ok()?;
    memory.read(piece.address, &mut bytes[..usize::from(piece.size)]).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// The instruction that ends at `rip`, and where it is, or was before it was moved.
fn before(memory: &ProcessMemory, modules: &Modules, rip: u64, moves: &[Place]) -> Option<(u64, Instruction)> {
    const LONGEST: u64 = 15;
    let decode = |from: u64, to: u64| {
        let mut bytes = vec![0; (to - from) as usize];
        memory.read(from, &mut bytes).ok()?;
        let ends = |i: &Instruction| i.next_ip() == rip && !i.is_invalid();
        Decoder::with_ip(64, &bytes, from, DecoderOptions::NONE).into_iter().find(ends)
    };
    // In code that was moved, the last moved instruction before.
    let after = moves.partition_point(|place| place.at < rip);
    if let Some(moved) = moves[..after].last().filter(|moved| rip - moved.at <= LONGEST) {
        return decode(moved.at, rip).map(|i| (moved.to, i));
    }
    // A function is decoded from its beginning.
    let location = modules.locate(rip - 1);
    let start = (rip - 1).checked_sub(location.offset).filter(|_| location.function.is_some())?;
    const FAR: u64 = 1 << 20;
    if rip - start > FAR {
        return None;
    }
    decode(start, rip).map(|i| (i.ip(), i))
}

/// What an instruction does to memory, if that is one thing.
fn does(i: &Instruction) -> Option<Use> {
    let mut factory = InstructionInfoFactory::new();
    let all: Vec<OpAccess> = factory.info(i).used_memory().iter().map(|m| m.access()).collect();
    let one = |access: &OpAccess| match access {
        OpAccess::Read | OpAccess::CondRead => Some(Use::Read),
        OpAccess::Write | OpAccess::CondWrite => Some(Use::Write),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some(Use::Update),
        _ => None,
    };
    match all.as_slice() {
        [access] => one(access),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_aligned_is_split() {
        assert_eq!(split(0x1000, 8), [(0x1000, 8)]);
        assert_eq!(split(0x1000, 3), [(0x1000, 2), (0x1002, 1)]);
        assert_eq!(split(0x1003, 8), [(0x1003, 1), (0x1004, 4), (0x1008, 2), (0x100a, 1)]);
        assert!(split(0x1000, 1 << 40).len() > REGISTERS);
    }

    #[test]
    fn the_control_register_is_as_the_manual_says() {
        // Intel SDM 3, 17.2.4: L0 is bit 0; R/W0 bits 16 and 17, LEN0 bits 18 and 19.
        let piece = |size| Piece { address: 0x1000, size, name: String::new() };
        assert_eq!(control(&[piece(4)]), 1 | 0xf << 16);
        assert_eq!(control(&[piece(1), piece(8)]), 0b101 | 3 << 16 | 0b1011 << 20);
        assert_eq!(control(&[piece(2), piece(2), piece(2), piece(2)]), 0x55 | 0x7777 << 16);
    }

    #[test]
    fn instructions_tell_what_they_do() {
        let does_it = |bytes: &[u8]| does(&Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode());
        assert_eq!(does_it(&[0x8b, 0x07]), Some(Use::Read)); // mov eax, [rdi]
        assert_eq!(does_it(&[0x89, 0x07]), Some(Use::Write)); // mov [rdi], eax
        assert_eq!(does_it(&[0xff, 0x07]), Some(Use::Update)); // inc dword [rdi]
        assert_eq!(does_it(&[0xf0, 0x0f, 0xb1, 0x07]), Some(Use::Update)); // lock cmpxchg [rdi], eax
        assert_eq!(does_it(&[0xff, 0x37]), None); // push [rdi]
    }
}
