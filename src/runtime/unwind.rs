//! Call stacks of stopped threads, by the call frame information in `.eh_frame`.
//!
//! Nothing is asked of the program: x86-64 code is compiled with unwind tables unless someone forbids it. Where there
//! are none (hand-written code, trampolines), signal frames are known by their code, jumps to nowhere by the return
//! address on top of the stack, and everything else is taken to keep its frame in rbp.
//!
//! NOTE [Return addresses]. A return address may be the first byte of the next function, if the call is the last thing
//! in its own. So the caller is looked up one byte before. Where a thread stopped, and where a signal interrupted it,
//! the address is exact and is looked up as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, EvaluationResult, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::program_header::{PF_X, PT_LOAD};
use goblin::elf::section_header::SHT_NOBITS;
use goblin::elf::{Elf, ProgramHeader, SectionHeader};

const PAGE: u64 = 4096;
const RBP: usize = 6;
const RSP: usize = 7;
/// DWARF's number for the return address, the column after the 16 general registers.
const RIP: u16 = 16;
/// A DWARF expression of a sane unwind table has some ten operations.
const MAX_OPERATIONS: u32 = 1000;

/// Reads the memory of the process whose stack is walked.
pub trait ReadMemory {
    /// The little-endian 64-bit word at `addr`, which need not be aligned; None if it cannot be read.
    fn read_u64(&self, addr: u64) -> Option<u64>;
}

/// The registers that a call stack is found from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regs {
    /// By DWARF number: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15.
    pub general: [u64; 16],
    /// The program counter.
    pub rip: u64,
}

impl Regs {
    fn get(&self, number: u16) -> Option<u64> {
        match number {
            RIP => Some(self.rip),
            _ => self.general.get(usize::from(number)).copied(),
        }
    }

    fn rsp(&self) -> u64 {
        self.general[RSP]
    }
}

impl From<&libc::user_regs_struct> for Regs {
    fn from(r: &libc::user_regs_struct) -> Regs {
        let low = [r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp];
        let high = [r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
        let mut general = [0; 16];
        general[..8].copy_from_slice(&low);
        general[8..].copy_from_slice(&high);
        Regs { general, rip: r.rip }
    }
}

// --------------------------------------------------------------------------------------------------------- mappings

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Where in the file it starts.
    pub offset: u64,
    /// The mapped file; None for anonymous memory and the kernel's own (`[stack]`, `[vdso]`).
    pub path: Option<PathBuf>,
    /// Whether code in it can run.
    pub exec: bool,
}

impl Mapping {
    fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The mappings in the text of `/proc/PID/maps`. Lines that are not of that form are left out.
pub fn parse_maps(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_mapping).collect()
}

/// `start-end rwxp offset major:minor inode      path`
fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let (field, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = tail;
        field
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field().split_once('-')?;
    let (permissions, offset, _device, _inode) = (field(), field(), field(), field());
    let name = rest.trim_start_matches(' ');
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        path: name.starts_with('/').then(|| path_of(name)),
        exec: permissions.contains('x'),
    })
}

/// The kernel writes a newline in a name as an octal escape, and nothing else so.
fn path_of(name: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(name.replace("\\012", "\n").into_bytes()))
}

fn executable_at(maps: &[Mapping], address: u64) -> Option<&Mapping> {
    maps.iter().find(|m| m.exec && m.contains(address))
}

// ---------------------------------------------------------------------------------------------------------- modules

/// A loadable segment of a file.
#[derive(Clone, Copy, Debug)]
struct Load {
    offset: u64,
    size: u64,
    vaddr: u64,
    executable: bool,
}

/// The code that one unwind entry (FDE) is about, in the addresses of the file.
#[derive(Clone, Copy, Debug)]
struct Covered {
    start: u64,
    end: u64,
    /// Where in the section the entry is.
    entry: usize,
}

/// What of a file is needed to unwind its code.
#[derive(Debug)]
struct Module {
    loads: Vec<Load>,
    /// The content of `.eh_frame`.
    section: Vec<u8>,
    bases: BaseAddresses,
    /// invariant: sorted by `start`.
    covered: Vec<Covered>,
}

impl Module {
    /// None if the file cannot be read, is no 64-bit ELF file or has no `.eh_frame`.
    fn open(path: &Path) -> Option<Module> {
        let ctx = Ctx { container: Container::Big, le: Endian::Little };
        let file = File::open(path).ok()?;
        let header = Elf::parse_header(&read(&file, 0, 64)?).ok()?;
        let table = read(&file, header.e_phoff, u64::from(header.e_phnum) * u64::from(header.e_phentsize))?;
        let segments = ProgramHeader::parse(&table, 0, usize::from(header.e_phnum), ctx).ok()?;
        let table = read(&file, header.e_shoff, u64::from(header.e_shnum) * u64::from(header.e_shentsize))?;
        let sections = SectionHeader::parse_from(&table, 0, usize::from(header.e_shnum), ctx).ok()?;
        let eh_frame = find_section(&file, &sections, usize::from(header.e_shstrndx), b".eh_frame")?;
        let mut module = Module {
            loads: segments.iter().filter(|s| s.p_type == PT_LOAD).map(load).collect(),
            section: read(&file, eh_frame.sh_offset, eh_frame.sh_size)?,
            bases: BaseAddresses::default().set_eh_frame(eh_frame.sh_addr),
            covered: Vec::new(),
        };
        module.covered = module.index();
        Some(module)
    }

    fn eh_frame(&self) -> EhFrame<EndianSlice<'_, LittleEndian>> {
        EhFrame::new(&self.section, LittleEndian)
    }

    /// What each entry covers, up to the first that is damaged.
    fn index(&self) -> Vec<Covered> {
        let eh_frame = self.eh_frame();
        let mut entries = eh_frame.entries(&self.bases);
        let mut covered = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(fde) = entry else { continue };
            let Ok(fde) = fde.parse(EhFrame::cie_from_offset) else { continue };
            covered.push(Covered { start: fde.initial_address(), end: fde.end_address(), entry: fde.offset() });
        }
        covered.sort_by_key(|c| c.start);
        covered
    }

    fn covering(&self, address: u64) -> Option<Covered> {
        let after = self.covered.partition_point(|c| c.start <= address);
        let candidate = *self.covered.get(after.checked_sub(1)?)?;
        (address < candidate.end).then_some(candidate)
    }

    /// What must be added to the file's addresses to get those of the process, where `mapping` shows the file at
    /// `address`. A page of the file can be mapped by two segments; the one with code is meant.
    fn bias(&self, mapping: &Mapping, address: u64) -> Option<u64> {
        let offset = address - mapping.start + mapping.offset;
        let holds = |l: &&Load| l.executable && (l.offset & !(PAGE - 1)..l.offset + l.size).contains(&offset);
        let load = self.loads.iter().find(holds)?;
        let in_file = offset.wrapping_sub(load.offset).wrapping_add(load.vaddr);
        Some(address.wrapping_sub(in_file))
    }
}

fn load(segment: &ProgramHeader) -> Load {
    Load {
        offset: segment.p_offset,
        size: segment.p_filesz,
        vaddr: segment.p_vaddr,
        executable: segment.p_flags & PF_X != 0,
    }
}

fn find_section(file: &File, sections: &[SectionHeader], names: usize, wanted: &[u8]) -> Option<SectionHeader> {
    let names = sections.get(names)?;
    let names = read(file, names.sh_offset, names.sh_size)?;
    let is_wanted = |section: &&SectionHeader| {
        let name = names.get(section.sh_name..).unwrap_or_default();
        section.sh_type != SHT_NOBITS && name.split(|b| *b == 0).next() == Some(wanted)
    };
    sections.iter().find(is_wanted).cloned()
}

/// None also if the file is not that long: a damaged size must not make us allocate.
fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    if offset.checked_add(size)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

// -------------------------------------------------------------------------------------------------------- unwinding

/// Finds call stacks; keeps the unwind tables it has read, by the path of the file.
#[derive(Default)]
pub struct Unwinder {
    modules: BTreeMap<PathBuf, Option<Module>>,
    context: Box<UnwindContext<usize>>,
}

/// A function that is being executed.
struct Frame {
    regs: Regs,
    /// The program counter is not a return address: see NOTE [Return addresses].
    exact: bool,
}

impl Frame {
    /// An address inside of the instruction that is being executed.
    fn address(&self) -> u64 {
        self.regs.rip.wrapping_sub(u64::from(!self.exact))
    }
}

/// What the unwind tables say about a frame.
enum Tabled {
    Caller(Frame),
    /// It has no caller, or the way to it is destroyed.
    End,
    /// There are no tables for this code.
    Unknown,
}

impl Unwinder {
    /// An unwinder that has read nothing yet.
    pub fn new() -> Unwinder {
        Unwinder::default()
    }

    /// The program counters of a stopped thread's frames, at most `max`, from where it is (`regs.rip`, whatever that
    /// is) to its outermost caller. All but the first and those interrupted by a signal are return addresses: to name
    /// the function, look one byte before them.
    ///
    /// `maps` are the mappings of its process now. A stack that is damaged gives the frames up to the damage.
    pub fn backtrace(&mut self, maps: &[Mapping], mem: &dyn ReadMemory, regs: Regs, max: usize) -> Vec<u64> {
        let mut frame = Frame { regs, exact: true };
        let mut counters = Vec::new();
        let mut seen = BTreeSet::new();
        while counters.len() < max && seen.insert((frame.regs.rip, frame.regs.rsp())) {
            counters.push(frame.regs.rip);
            match self.caller(maps, mem, &frame) {
                Some(caller) => frame = caller,
                None => break,
            }
        }
        counters
    }

    /// The frame that called, or was interrupted by, this one.
    fn caller(&mut self, maps: &[Mapping], mem: &dyn ReadMemory, frame: &Frame) -> Option<Frame> {
        let caller = match self.by_table(maps, mem, frame) {
            Tabled::Caller(caller) => caller,
            Tabled::End => return None,
            Tabled::Unknown => without_table(maps, mem, frame)?,
        };
        let plausible = caller.exact || executable_at(maps, caller.address()).is_some();
        (caller.regs.rip != 0 && plausible).then_some(caller)
    }

    fn by_table(&mut self, maps: &[Mapping], mem: &dyn ReadMemory, frame: &Frame) -> Tabled {
        let Unwinder { modules, context } = self;
        let address = frame.address();
        let Some(mapping) = executable_at(maps, address) else { return Tabled::Unknown };
        let Some(path) = &mapping.path else { return Tabled::Unknown };
        let module = modules.entry(path.clone()).or_insert_with(|| Module::open(path));
        let Some(module) = module else { return Tabled::Unknown };
        let Some(bias) = module.bias(mapping, address) else { return Tabled::Unknown };
        let Some(covered) = module.covering(address.wrapping_sub(bias)) else { return Tabled::Unknown };
        // The table is that of the code before, if what is returned to is a signal handler's return without a table.
        let returns_behind = frame.regs.rip.wrapping_sub(bias) == covered.end;
        if returns_behind && returns_from_signal(mem, frame.regs.rip) {
            return Tabled::Unknown;
        }
        match caller_by_entry(module, covered, context, bias, mem, frame) {
            Some(caller) => Tabled::Caller(caller),
            None => Tabled::End,
        }
    }
}

fn caller_by_entry(
    module: &Module,
    covered: Covered,
    context: &mut UnwindContext<usize>,
    bias: u64,
    mem: &dyn ReadMemory,
    frame: &Frame,
) -> Option<Frame> {
    let section = module.eh_frame();
    let fde = section.fde_from_offset(&module.bases, covered.entry.into(), EhFrame::cie_from_offset).ok()?;
    let in_file = frame.address().wrapping_sub(bias);
    let row = fde.unwind_info_for_address(&section, &module.bases, context, in_file).ok()?;
    let step = Step { section: &section, encoding: fde.cie().encoding(), bias, mem, regs: &frame.regs };
    let regs = step.caller(row, fde.cie().return_address_register())?;
    Some(Frame { regs, exact: fde.is_signal_trampoline() })
}

/// One step from a frame to its caller by a row of the table.
struct Step<'a> {
    section: &'a EhFrame<EndianSlice<'a, LittleEndian>>,
    encoding: gimli::Encoding,
    bias: u64,
    mem: &'a dyn ReadMemory,
    regs: &'a Regs,
}

impl Step<'_> {
    /// The caller's registers. Those without a rule are taken to be kept, as the calling convention mostly has it.
    fn caller(&self, row: &UnwindTableRow<usize>, return_address: Register) -> Option<Regs> {
        let cfa = self.cfa(row.cfa())?;
        let mut caller = *self.regs;
        caller.general[RSP] = cfa;
        for (register, rule) in row.registers() {
            if let Some(place) = caller.general.get_mut(usize::from(register.0)) {
                *place = self.value(rule, *register, cfa)?;
            }
        }
        // An undefined return address marks the outermost function.
        caller.rip = self.value(&row.register(return_address), return_address, cfa)?;
        Some(caller)
    }

    fn cfa(&self, rule: &CfaRule<usize>) -> Option<u64> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(self.regs.get(register.0)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None),
        }
    }

    fn value(&self, rule: &RegisterRule<usize>, register: Register, cfa: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.regs.get(register.0),
            RegisterRule::Offset(offset) => self.mem.read_u64(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => self.regs.get(other.0),
            RegisterRule::Expression(expression) => self.mem.read_u64(self.evaluate(expression, Some(cfa))?),
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of a DWARF expression; those of registers start with the CFA on their stack.
    fn evaluate(&self, expression: &UnwindExpression<usize>, cfa: Option<u64>) -> Option<u64> {
        let mut evaluation = expression.get(self.section).ok()?.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.read(address, size)?))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.regs.get(register.0)?))
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.bias))
                }
                _ => return None,
            }
            .ok()?;
        }
        evaluation.value_result()?.to_u64(u64::MAX).ok()
    }

    /// `size` bytes, at most 8, as a number.
    fn read(&self, address: u64, size: u8) -> Option<u64> {
        let unused_bits = 64u32.checked_sub(8 * u32::from(size))?;
        Some(self.mem.read_u64(address)? & u64::MAX.checked_shr(unused_bits)?)
    }
}

// --------------------------------------------------------------------------------------------------- without tables

fn without_table(maps: &[Mapping], mem: &dyn ReadMemory, frame: &Frame) -> Option<Frame> {
    let regs = &frame.regs;
    if executable_at(maps, frame.address()).is_none() {
        return after_wild_call(mem, regs);
    }
    if returns_from_signal(mem, regs.rip) {
        return interrupted(mem, regs.rsp()).map(|regs| Frame { regs, exact: true });
    }
    by_frame_pointer(mem, regs)
}

/// Where nothing can be executed, nothing was: a call has just pushed its return address.
fn after_wild_call(mem: &dyn ReadMemory, regs: &Regs) -> Option<Frame> {
    let mut caller = *regs;
    caller.rip = mem.read_u64(regs.rsp())?;
    caller.general[RSP] = regs.rsp().wrapping_add(8);
    Some(Frame { regs: caller, exact: false })
}

/// The code of a signal handler's return: the system call rt_sigreturn, number 15. Debuggers know it by these bytes.
fn returns_from_signal(mem: &dyn ReadMemory, rip: u64) -> bool {
    const MOV_RAX_15_SYSCALL: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
    const MOV_EAX_15_SYSCALL: [u8; 7] = [0xb8, 15, 0, 0, 0, 0x0f, 0x05];
    let (Some(first), Some(second)) = (mem.read_u64(rip), mem.read_u64(rip.wrapping_add(1))) else { return false };
    let mut code = [0; 9];
    code[..8].copy_from_slice(&first.to_le_bytes());
    code[8] = second.to_le_bytes()[7];
    code == MOV_RAX_15_SYSCALL || code.starts_with(&MOV_EAX_15_SYSCALL)
}

/// The registers in the `ucontext` that the kernel put on the stack, which is where the handler's return leaves rsp.
fn interrupted(mem: &dyn ReadMemory, ucontext: u64) -> Option<Regs> {
    const GREGS: u64 = 40; // uc_flags, uc_link, uc_stack
    const ORDER: [usize; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7];
    let word = |index: u64| mem.read_u64(ucontext.wrapping_add(GREGS + 8 * index));
    let mut regs = Regs::default();
    for (index, number) in (0..).zip(ORDER) {
        regs.general[number] = word(index)?;
    }
    regs.rip = word(16)?;
    Some(regs)
}

/// Takes rbp to point to the caller's rbp, above which is the return address. The stack grows down, so rbp must lie
/// above rsp, and the caller's frame above that.
fn by_frame_pointer(mem: &dyn ReadMemory, regs: &Regs) -> Option<Frame> {
    let rbp = regs.general[RBP];
    if rbp < regs.rsp() || rbp % 8 != 0 {
        return None;
    }
    let mut caller = *regs;
    caller.general[RBP] = mem.read_u64(rbp)?;
    caller.rip = mem.read_u64(rbp.checked_add(8)?)?;
    caller.general[RSP] = rbp.checked_add(16)?;
    Some(Frame { regs: caller, exact: false })
}

#[cfg(test)]
mod tests {
    use super::super::memory::ProcessMemory;
    use super::super::tracee::testing::{plain, stopped, Killer, TempDir};
    use super::super::tracee::{launch, Reason, Running, Stopped};
    use super::*;
    use nix::sys::ptrace::Options;
    use std::fs;
    use std::process::Command;

    /// What all the programs begin with: functions that are not inlined and whose calls are not in tail position.
    const COMMON: &str = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        #include <ucontext.h>
        #include <sys/syscall.h>
        #define STOP __asm__ volatile("int3")
        #define KEEP __asm__ volatile("" ::: "memory")
        #define CALL __attribute__((noipa))
    "#;

    /// A program that stands at its `STOP`, with the symbols `nm` finds in it.
    struct Debuggee {
        _dir: TempDir,
        exe: PathBuf,
        symbols: BTreeMap<u64, String>,
        unwinder: Unwinder,
    }

    impl Debuggee {
        fn build(source: &str, flags: &[&str]) -> Debuggee {
            let dir = TempDir::new();
            let exe = dir.compile(&format!("{COMMON}{source}"), &[&["-pthread", "-w"], flags].concat());
            let nm = Command::new("nm").arg(&exe).output().unwrap();
            let symbols = String::from_utf8(nm.stdout).unwrap().lines().filter_map(function).collect();
            Debuggee { _dir: dir, exe, symbols, unwinder: Unwinder::new() }
        }

        /// Runs the program to its first breakpoint, in whichever thread, and gives that to `look`.
        fn at_stop(&mut self, look: impl FnOnce(&mut Debuggee, Stopped) -> Stopped) {
            let mut root = launch(&plain(self.exe.clone())).unwrap();
            let killer = Killer::of(&root);
            root.set_options(Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACECLONE).unwrap();
            let root_pid = root.pid();
            let at = look(self, to_breakpoint(root));
            let dying = at.kill().unwrap();
            if dying.pid() != root_pid {
                let _ = dying.reap().unwrap(); // a thread must go before the first thread can
            }
            drop(killer);
        }

        fn backtrace(&mut self, at: &Stopped) -> Vec<String> {
            let text = fs::read_to_string(format!("/proc/{}/maps", at.pid())).unwrap();
            let maps = parse_maps(&text);
            let memory = ProcessMemory::open(at.pid()).unwrap();
            let counters = self.unwinder.backtrace(&maps, &memory, Regs::from(&at.regs().unwrap()), 50);
            counters.iter().enumerate().map(|(i, pc)| self.name(&maps, *pc, i == 0)).collect()
        }

        /// The function of the program, or the file, that the counter is in. The first counter is exact, and so is one
        /// at which a function starts, in these programs.
        fn name(&self, maps: &[Mapping], counter: u64, exact: bool) -> String {
            let Some(mapping) = maps.iter().find(|m| m.contains(counter)) else { return format!("{counter:#x}") };
            let Some(path) = &mapping.path else { return "anonymous".to_string() };
            if *path != self.exe {
                return path.file_name().unwrap().to_string_lossy().into_owned();
            }
            // Independent of the code under test: gcc's first segment starts at the file's start.
            let start = maps.iter().find(|m| m.path.as_ref() == Some(path)).unwrap().start;
            let bias = if start < 0x1000_0000 { 0 } else { start };
            let address = counter - bias;
            let address = if exact || self.symbols.contains_key(&address) { address } else { address - 1 };
            self.symbols.range(..=address).next_back().unwrap().1.clone()
        }
    }

    fn function(line: &str) -> Option<(u64, String)> {
        let mut fields = line.split(' ');
        let (address, kind, name) = (fields.next()?, fields.next()?, fields.next()?);
        let address = u64::from_str_radix(address, 16).ok()?;
        kind.eq_ignore_ascii_case("t").then(|| (address, name.to_string()))
    }

    fn to_breakpoint(root: Stopped) -> Stopped {
        let mut at = root;
        loop {
            at = match at.reason() {
                Reason::Signal(s) if s.number() == libc::SIGTRAP => return at,
                Reason::Clone(thread) => {
                    let leader = at.pid();
                    let _ = at.resume(None).unwrap();
                    let thread = stopped(Running::traced(thread).wait().unwrap());
                    // The programs' threads reach the breakpoint, not the one that waits for them.
                    assert_ne!(thread.pid(), leader);
                    stopped(thread.resume(None).unwrap().wait().unwrap())
                }
                Reason::Signal(s) => stopped(at.resume(Some(s)).unwrap().wait().unwrap()),
                _ => stopped(at.resume(None).unwrap().wait().unwrap()),
            };
        }
    }

    /// Checks the whole stack of a program at its breakpoint.
    fn check(source: &str, flags: &[&str], expected: &[&str]) {
        let mut debuggee = Debuggee::build(source, flags);
        debuggee.at_stop(|debuggee, at| {
            assert_eq!(debuggee.backtrace(&at), expected);
            at
        });
    }

    const LIBC: &str = "libc.so.6";

    const NESTED: &str = r#"
        CALL int deep(int n) { volatile char room[200]; room[n] = n; STOP; return room[n]; }
        CALL int middle(int n) { char room[n * 100]; memset(room, n, sizeof room); KEEP; return deep(n) + room[3]; }
        CALL int outer(int n) { int r = middle(n + 1); KEEP; return r + n; }
        "#;

    #[test]
    fn nested_calls() {
        let source = format!("{NESTED} int main(int c, char **v) {{ int r = outer(c); KEEP; return r; }}");
        let expected = ["deep", "middle", "outer", "main", LIBC, LIBC, "_start"];
        check(&source, &["-O2"], &expected);
        check(&source, &["-O0", "-no-pie"], &expected);
        check(&source, &["-O2", "-no-pie", "-Wl,-z,noseparate-code"], &expected);
    }

    #[test]
    fn threads() {
        let source = format!(
            "{NESTED} CALL void *work(void *x) {{ long r = outer(2); KEEP; return (void *)r; }}
            int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); }}"
        );
        check(&source, &["-O2", "-fomit-frame-pointer"], &["deep", "middle", "outer", "work", LIBC, LIBC]);
    }

    const HANDLER: &str = r#"
        CALL int in_handler(int n) { STOP; return n; }
        CALL void handler(int n) { in_handler(n); KEEP; }
        "#;

    #[test]
    fn signal_handlers() {
        for on_stack in ["0", "SA_ONSTACK"] {
            let source = format!(
                "{HANDLER} static char room[65536];
                CALL int crash(int *p) {{ volatile char more[100]; more[0] = 1; KEEP; return *p + more[0]; }}
                CALL int outer(int *p) {{ int r = crash(p); KEEP; return r; }}
                int main(void) {{
                    stack_t other = {{ .ss_sp = room, .ss_size = sizeof room }};
                    sigaltstack(&other, 0);
                    struct sigaction a = {{ .sa_handler = handler, .sa_flags = {on_stack} }};
                    sigaction(SIGSEGV, &a, 0);
                    int r = outer(0); KEEP; return r;
                }}"
            );
            let expected = ["in_handler", "handler", LIBC, "crash", "outer", "main", LIBC, LIBC, "_start"];
            check(&source, &["-O2"], &expected);
        }
    }

    /// A function interrupted at its very first instruction lies right behind another that has a large frame.
    #[test]
    fn an_interrupted_address_is_exact() {
        let source = format!(
            r#"{HANDLER}
            __asm__(".text\n.type before,@function\nbefore: .cfi_startproc\n .cfi_def_cfa_offset 4096\n ud2\n"
                ".cfi_endproc\n.type crash,@function\ncrash: .cfi_startproc\n movl $0, 0\n ret\n .cfi_endproc\n");
            void crash(void);
            int main(void) {{ signal(SIGSEGV, handler); crash(); KEEP; return 0; }}"#
        );
        check(&source, &["-O2"], &["in_handler", "handler", LIBC, "crash", "main", LIBC, LIBC, "_start"]);
    }

    /// A restorer as small runtimes bring it, right behind a function with tables.
    #[test]
    fn a_signal_return_without_tables() {
        let source = format!(
            r#"{HANDLER}
            __asm__(".text\n.type before,@function\nbefore: .cfi_startproc\n .cfi_def_cfa_offset 4096\n ud2\n"
                ".cfi_endproc\n.type restorer,@function\nrestorer: mov $15, %eax\n syscall\n");
            void restorer(void);
            CALL int send(void) {{ int r = kill(getpid(), SIGUSR1); KEEP; return r; }}
            int main(void) {{
                struct {{ void *handler; long flags; void *restorer; long mask; }} a = {{ handler, 0x04000000, restorer }};
                syscall(SYS_rt_sigaction, SIGUSR1, &a, 0, 8L);
                int r = send(); KEEP; return r;
            }}"#
        );
        let expected = ["in_handler", "handler", "restorer", LIBC, "send", "main", LIBC, LIBC, "_start"];
        check(&source, &["-O2"], &expected);
    }

    #[test]
    fn code_without_tables_by_frame_pointer() {
        let source = format!("{NESTED} int main(int c, char **v) {{ int r = outer(c); KEEP; return r; }}");
        let flags = ["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-omit-frame-pointer"];
        check(&source, &flags, &["deep", "middle", "outer", "main", LIBC, LIBC, "_start"]);
    }

    /// Each kind of register rule: the callee saves rbx by an expression, and the caller finds its frame by rbx.
    #[test]
    fn every_kind_of_rule() {
        let source = r#"
            __asm__(".text\n.type callee,@function\ncallee: .cfi_startproc\n push %rbx\n .cfi_def_cfa_offset 16\n"
                ".cfi_escape 0x10, 16, 3, 0x09, 0xf8, 0x22\n"       // return address: at CFA - 8
                ".cfi_escape 0x14, 7, 0\n"                          // rsp: CFA + 0
                ".cfi_escape 0x16, 3, 4, 0x09, 0xf0, 0x22, 0x06\n"  // rbx: the content of CFA - 16
                ".cfi_register 12, 6\n"                             // r12: in rbp
                "xor %ebx, %ebx\n int3\n pop %rbx\n ret\n .cfi_endproc\n"
                ".type caller,@function\ncaller: .cfi_startproc\n push %rbx\n .cfi_def_cfa_offset 16\n"
                ".cfi_offset 3, -16\n mov %rsp, %rbx\n .cfi_def_cfa_register 3\n sub $400, %rsp\n call callee\n"
                "mov %rbx, %rsp\n pop %rbx\n ret\n .cfi_endproc\n");
            void caller(void);
            int main(void) { caller(); KEEP; return 0; }"#;
        check(source, &["-O2"], &["callee", "caller", "main", LIBC, LIBC, "_start"]);
    }

    /// A call at the very end of a function that does not come back: its return address belongs to the next.
    #[test]
    fn a_call_that_does_not_return() {
        let source = r#"
            __asm__(".text\n.type last,@function\nlast: .cfi_startproc\n sub $72, %rsp\n .cfi_adjust_cfa_offset 72\n"
                "call stop_here\n.cfi_endproc\n.type next,@function\nnext: .cfi_startproc\n"
                ".cfi_def_cfa_offset 4096\n ret\n .cfi_endproc\n");
            CALL void stop_here(void) { STOP; _exit(0); }
            void last(void);
            int main(void) { last(); KEEP; return 0; }"#;
        let mut debuggee = Debuggee::build(source, &["-O2"]);
        debuggee.at_stop(|debuggee, at| {
            let names = debuggee.backtrace(&at);
            assert_eq!(names[0], "stop_here");
            assert_eq!(names[2..], ["main", LIBC, LIBC, "_start"]);
            at
        });
    }

    #[test]
    fn a_call_of_a_null_pointer() {
        let source = "
            void (*volatile nothing)(void);
            CALL int caller(int n) { nothing(); KEEP; return n; }
            int main(int c, char **v) { STOP; int r = caller(c); KEEP; return r; }";
        let mut debuggee = Debuggee::build(source, &["-O2"]);
        debuggee.at_stop(|debuggee, at| {
            let at = stopped(at.resume(None).unwrap().wait().unwrap());
            assert_eq!(at.siginfo().unwrap().si_signo, libc::SIGSEGV);
            assert_eq!(debuggee.backtrace(&at), ["0x0", "caller", "main", LIBC, LIBC, "_start"]);
            at
        });
    }

    /// At every single instruction of a call through the PLT that the loader must resolve first.
    #[test]
    fn every_instruction_of_a_lazy_call() {
        let source = "
            CALL int outer(void) { STOP; int r = getppid(); KEEP; return r; }
            CALL void finished(void) { KEEP; }
            int main(void) { int r = outer(); KEEP; finished(); return r; }";
        let mut debuggee = Debuggee::build(source, &["-O2", "-Wl,-z,lazy"]);
        debuggee.at_stop(|debuggee, mut at| {
            let mut seen = BTreeSet::new();
            for _ in 0..20_000 {
                let names = debuggee.backtrace(&at);
                let from_main = &names[names.len().saturating_sub(4)..];
                assert_eq!(from_main, ["main", LIBC, LIBC, "_start"], "{names:?} {:#x?}", at.regs());
                seen.extend(names.clone());
                if names[0] == "finished" {
                    break;
                }
                assert!(names[0] == "main" || names[names.len() - 5] == "outer", "{names:?}");
                at = stopped(at.step(None).unwrap().wait().unwrap());
            }
            assert!(seen.contains("finished"), "{seen:?}");
            assert!(seen.iter().any(|n| n.starts_with("ld-linux")), "{seen:?}");
            at
        });
    }

    #[test]
    fn damaged_stacks_end() {
        struct Garbage;
        impl ReadMemory for Garbage {
            fn read_u64(&self, addr: u64) -> Option<u64> {
                (addr % 3 != 0).then_some(addr.rotate_left(13) ^ 0x5555)
            }
        }
        struct Loop;
        impl ReadMemory for Loop {
            fn read_u64(&self, addr: u64) -> Option<u64> {
                Some(if addr == 0x2000 { 0x2000 } else { 0x1234 })
            }
        }
        let maps = parse_maps("1000-3000 r-xp 00000000 00:00 0 \n");
        let mut regs = Regs { general: [0x2000; 16], rip: 0x1010 };
        let mut unwinder = Unwinder::new();
        assert_eq!(unwinder.backtrace(&maps, &Garbage, regs, 50)[0], 0x1010);
        // rbp points to itself: its second frame is below the first.
        assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 50), [0x1010, 0x1234]);
        assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 1), [0x1010]);
        assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 0), []);
        regs.general[RBP] = u64::MAX - 7;
        assert_eq!(unwinder.backtrace(&maps, &Loop, regs, 50), [0x1010]);
        assert_eq!(unwinder.backtrace(&[], &Garbage, Regs::default(), 50)[0], 0);
    }

    #[test]
    fn damaged_files_are_not_believed() {
        let dir = TempDir::new();
        let exe = dir.compile("int main(void){return 0;}", &[]);
        let good = fs::read(&exe).unwrap();
        assert!(Module::open(&exe).is_some_and(|m| !m.covered.is_empty()));
        let damaged = dir.0.join("damaged");
        for position in (0..64).chain(good.len() - 64 * 40..good.len()) {
            let mut bytes = good.clone();
            bytes[position] = 0xff;
            fs::write(&damaged, &bytes).unwrap();
            let _ = Module::open(&damaged);
        }
        for length in [0, 10, 64, 1000, good.len() / 2] {
            fs::write(&damaged, &good[..length]).unwrap();
            assert!(Module::open(&damaged).is_none());
        }
        assert!(Module::open(&dir.0).is_none());
    }

    #[test]
    fn maps_are_parsed() {
        let text = "\
555555554000-555555555000 r--p 00001000 fe:00 123                        /a dir/pro\\012gram (x)\n\
7ffff7fc5000-7ffff7fc7000 r-xp 00000000 00:00 0                          [vdso]\n\
7ffff7fc9000-7ffff7fca000 rw-p 00000000 00:00 0 \n\
not a mapping\n";
        let maps = parse_maps(text);
        let first = Mapping {
            start: 0x5555_5555_4000,
            end: 0x5555_5555_5000,
            offset: 0x1000,
            path: Some(PathBuf::from("/a dir/pro\ngram (x)")),
            exec: false,
        };
        assert_eq!(maps[0], first);
        assert_eq!((maps[1].exec, &maps[1].path), (true, &None));
        assert_eq!((maps[2].exec, &maps[2].path, maps.len()), (false, &None, 3));
    }

    #[test]
    fn registers_are_numbered_as_dwarf_does() {
        let mut at = Debuggee::build("int main(void){STOP; return 0;}", &["-O1"]);
        at.at_stop(|_, at| {
            let r = at.regs().unwrap();
            let regs = Regs::from(&r);
            assert_eq!((regs.rip, regs.get(16)), (r.rip, Some(r.rip)));
            assert_eq!([regs.get(1), regs.get(2), regs.get(4), regs.get(5)], [r.rdx, r.rcx, r.rsi, r.rdi].map(Some));
            assert_eq!([regs.get(6), regs.get(7), regs.get(15)], [r.rbp, r.rsp, r.r15].map(Some));
            assert_eq!(regs.get(17), None);
            at
        });
    }
}
