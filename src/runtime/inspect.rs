//! Looking at a world that stands still under the tracer: where every thread is, who holds what, what the signal was.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;
use vsrun_model::object::{Key, SHARED};
use vsrun_model::watch::Place;
use vsrun_model::{ProcState, Tid, World};

use super::look::from_model;
use super::memory::ProcessMemory;
use super::session::SHIM_NAME;
use super::tracee::{fault_address, Event, Running, Signal, Stopped};
use super::unwind::{Regs, Unwinder};
use crate::binary::{Location, Modules, SymbolCache};
use crate::finding::{words, Ending, Finding, PlaceView, SignalView, ThreadView};
use crate::trace::Trace;
use crate::words::ends::line;

/// Frames of a call stack that are kept.
const MAX_FRAMES: usize = 64;

/// What is kept between looks: parsed binaries.
#[derive(Default)]
pub struct Inspector {
    pub(super) symbols: SymbolCache,
    pub(super) unwinder: Unwinder,
    /// Where moved instructions are, and where they were; ascending.
    moves: Arc<Vec<Place>>,
    /// Where the sites are that are watched.
    pub(super) sites: Vec<u64>,
    /// The process that stands at the root.
    root: Option<Pid>,
    /// How long the slowest look at an execution took that came to its end.
    pub slowest: Duration,
}

/// A process that can be looked at.
pub(super) struct View {
    pub(super) modules: Modules,
    pub(super) memory: Option<ProcessMemory>,
    program: String,
    /// Registers of the fiber that is on the processor, and its thread pointer.
    regs: Option<(Regs, u64)>,
}

/// The registers, with the program counter where it would be had nothing been moved.
fn registers(stopped: &Stopped, moves: &[Place]) -> Option<libc::user_regs_struct> {
    let mut r = stopped.regs().ok()?;
    if let Some(to) = before_the_move(r.rip, moves) {
        r.rip = to;
    }
    Some(r)
}

/// Where the instruction at `at` was before it was moved; that of a check is where the instruction is that it comes before.
fn before_the_move(at: u64, moves: &[Place]) -> Option<u64> {
    const LONGEST_CHECK: u64 = 64;
    const PAGE: u64 = 4096;
    let next = moves[moves.partition_point(|place| place.at < at)..].first()?;
    let in_its_check = next.at - at <= LONGEST_CHECK && next.at / PAGE == at / PAGE;
    (next.at == at || in_its_check).then_some(next.to)
}

fn of_fiber(r: libc::user_regs_struct) -> (Regs, u64) {
    (Regs::from(&r), r.fs_base)
}

/// The registers of a parked fiber from what a switch leaves on its stack: control words, r15, r14, r13, r12, rbx,
/// rbp, return address.
fn parked(memory: &ProcessMemory, context: u64) -> Option<Regs> {
    let word = |n: u64| memory.read_u64(context + 8 * n).ok();
    let mut general = [0; 16];
    for (register, slot) in [(15, 1), (14, 2), (13, 3), (12, 4), (3, 5), (6, 6)] {
        general[register] = word(slot)?;
    }
    general[7] = context + 64;
    Some(Regs { general, rip: word(7)? })
}

impl Inspector {
    /// Instructions of the world that is looked at were moved.
    pub(super) fn use_moves(&mut self, moves: Arc<Vec<Place>>, sites: Vec<u64>) {
        (self.moves, self.sites) = (moves, sites);
    }

    /// Variables and routines of processes that are over get their names from the root, from which they were forked.
    pub fn know_root(&mut self, root: i32) {
        self.root = Some(Pid::from_raw(root));
    }

    /// Looks at a world at its end, whose turn holder is `stopped` (`None`: it is gone already). Other processes are
    /// stopped.
    pub fn look(&mut self, world: &World, trace: &Trace, ending: &Ending, stopped: Option<&Stopped>) -> Finding {
        let mut views: BTreeMap<u32, View> = BTreeMap::new();
        for (p, process) in world.procs.as_slice().iter().enumerate() {
            if process.state != ProcState::LIVE || process.own.real_pid <= 0 {
                let root = self.root.filter(|_| is_of_root(world, p as u32)).and_then(|root| self.open(root, None));
                root.into_iter().for_each(|root| drop(views.insert(p as u32, View { memory: None, ..root })));
                continue;
            }
            let pid = Pid::from_raw(process.own.real_pid);
            let regs = match stopped {
                Some(s) if s.pid() == pid => registers(s, &self.moves),
                _ => stop(pid).as_ref().and_then(|s| registers(s, &self.moves)),
            };
            if let Some(view) = self.open(pid, regs.map(of_fiber)) {
                views.insert(p as u32, view);
            }
        }
        let mut found = from_model(world, trace, ending, &|key| symbol_of(&views, key));
        for (&p, view) in &views {
            found.processes[p as usize].program.clone_from(&view.program);
        }
        for (t, view) in found.threads.iter_mut().enumerate() {
            self.complete(world, t as Tid, view, &views);
        }
        let at = found.threads.get(world.current as usize).and_then(|t| t.frames.first());
        found.summary = line(world, ending, at.map(ToString::to_string).as_deref()).1;
        found.signal = match (ending, stopped) {
            (Ending::Crash { signal, .. }, Some(stopped)) => Some(signal_view(world, stopped, &self.moves, *signal)),
            _ => None,
        };
        if found.overwrites_vsrun() {
            found.summary = words![found.summary, ": it writes to vsrun's memory, where nothing of the program's is"];
        }
        found
    }

    /// Looks at a world that a debugger has stopped: all but call stacks, which that shows itself.
    pub fn glance(&mut self, world: &World, trace: &Trace) -> Finding {
        let mut views: BTreeMap<u32, View> = BTreeMap::new();
        for (p, process) in world.procs.as_slice().iter().enumerate() {
            if process.state == ProcState::LIVE && process.own.real_pid > 0 {
                let view = self.open(Pid::from_raw(process.own.real_pid), None);
                view.into_iter().for_each(|view| drop(views.insert(p as u32, View { memory: None, ..view })));
            }
        }
        let mut found = from_model(world, trace, &Ending::Modelled, &|key| symbol_of(&views, key));
        for (&p, view) in &views {
            found.processes[p as usize].program.clone_from(&view.program);
        }
        for (t, view) in found.threads.iter_mut().enumerate() {
            self.complete(world, t as Tid, view, &views);
        }
        found
    }

    pub(super) fn open(&mut self, pid: Pid, regs: Option<(Regs, u64)>) -> Option<View> {
        let text = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let program = Path::new(&exe).file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(View {
            modules: Modules::parse(&text, &mut self.symbols),
            memory: ProcessMemory::open(pid).ok(),
            program,
            regs,
        })
    }

    /// Adds what only the process knows to what the model knows of a thread.
    fn complete(&mut self, world: &World, t: Tid, view: &mut ThreadView, views: &BTreeMap<u32, View>) {
        let thread = &world.threads[t];
        let Some(process) = views.get(&thread.pid) else { return };
        if thread.fiber.start != 0 {
            let start = process.modules.locate(thread.fiber.start);
            view.start = start.function.clone().unwrap_or_else(|| start.to_string());
            view.begins = process.modules.shown(&start).lines.into_iter().next_back();
        } else if world.procs[thread.pid].main_thread == t {
            view.start = "main".to_string();
        }
        let Some(memory) = process.memory.as_ref().filter(|_| thread.alive()) else { return };
        let regs = match process.regs {
            Some((regs, fs)) if fs == thread.fiber.fs => Some(regs),
            _ if thread.fiber.context != 0 => parked(memory, thread.fiber.context),
            _ => None,
        };
        if let Some(regs) = regs {
            let stack = self.unwinder.backtrace(process.modules.mappings(), memory, regs, MAX_FRAMES);
            view.frames = frames(&stack, &process.modules);
            // Through code that was moved there is no way out.
            let site = (thread.fiber.place as usize).checked_sub(1).and_then(|site| self.sites.get(site));
            if let Some(site) = site.filter(|_| view.frames.is_empty()) {
                view.frames = vec![process.modules.place(*site)];
            }
        }
    }
}

/// The process runs the program of the root: none of those from which it was forked, and not itself, has become another one.
fn is_of_root(world: &World, p: u32) -> bool {
    let mut process = p;
    loop {
        if world.procs.get(process).is_none_or(|p| p.execs > 0) {
            return false;
        }
        let creator = world.threads.get(world.procs[process].main_thread).map(|thread| thread.creator);
        match creator.and_then(|thread| world.threads.get(thread)).map(|thread| thread.pid) {
            // Processes are numbered in the order of their creation.
            Some(parent) if parent < process => process = parent,
            _ => return true,
        }
    }
}

/// The places of a call stack, without the frames that are vsrun's: the innermost ones, functions of vsrun's that stand for those of libc, and
/// what lies outside of the program.
pub(super) fn frames(stack: &[u64], modules: &Modules) -> Vec<PlaceView> {
    let all =
        stack.iter().enumerate().map(|(i, &pc)| if i == 0 { modules.locate(pc) } else { modules.locate_return(pc) });
    let places: Vec<_> = all.collect();
    let inside = &places[..inside(&places)];
    inside.iter().filter(|l| l.module != SHIM_NAME).map(|l| modules.shown(l)).collect()
}

/// How many frames of a call stack there are before those that are outside of the program: what calls main, and what vsrun calls threads from.
fn inside(places: &[Location]) -> usize {
    let main = places.iter().position(|l| l.function.as_deref() == Some("__libc_start_call_main"));
    let inner = &places[..main.unwrap_or(places.len())];
    let of_vsrun = |l: &Location| l.module == SHIM_NAME;
    let of_libc = |l: &Location| l.module.starts_with("libc.so") || l.module.starts_with("ld-linux");
    let innermost = inner.iter().take_while(|l| of_vsrun(l)).count();
    let program = inner.iter().rposition(|l| !of_vsrun(l) && !of_libc(l)).map_or(0, |last| last + 1);
    let from = innermost.max(program);
    from + inner[from..].iter().take_while(|l| !of_vsrun(l)).count()
}

/// Stops a process of the execution that waits for its turn. It stays stopped.
fn stop(pid: Pid) -> Option<Stopped> {
    let running = Running::traced(pid);
    running.interrupt().ok()?;
    match running.wait().ok()? {
        Event::Stopped(stopped) => Some(stopped),
        _ => None,
    }
}

/// What is known of the place of an object.
fn symbol_of(views: &BTreeMap<u32, View>, key: &Key) -> Option<String> {
    if key.space & SHARED != 0 {
        return None;
    }
    let modules = &views.get(&key.space)?.modules;
    modules.variable_name(key.addr).or_else(|| {
        let region = modules.region(key.addr);
        Some(format!("{} {:#x} ({region})", key.kind.name(), key.addr))
    })
}

/// The fatal signal of a stopped process.
fn signal_view(world: &World, stopped: &Stopped, moves: &[Place], signal: i32) -> SignalView {
    let name = Signal::from_number(signal).map_or_else(|| signal.to_string(), |s| s.to_string());
    let info = stopped.siginfo().ok();
    let address = info.as_ref().and_then(fault_address);
    let code = info.as_ref().map(|i| code_name(signal, i.si_code));
    // Of a signal that was sent, the registers are those of the call that sent it, real process ids among them.
    let sent = info.as_ref().is_some_and(|i| i.si_code <= 0);
    let registers = if sent { Vec::new() } else { registers(stopped, moves).map(register_list).unwrap_or_default() };
    SignalView { name, code, address, thread: world.current, registers }
}

fn code_name(signal: i32, code: i32) -> String {
    let name = match (signal, code) {
        (_, 0) => "SI_USER: sent by kill",
        (_, -6) => "SI_TKILL: sent by raise or pthread_kill",
        (libc::SIGSEGV, 1) => "SEGV_MAPERR: nothing is mapped there",
        (libc::SIGSEGV, 2) => "SEGV_ACCERR: not permitted there",
        (libc::SIGBUS, 2) => "BUS_ADRERR: beyond the end of the mapped file",
        (libc::SIGFPE, 1) => "FPE_INTDIV: integer division by zero",
        (libc::SIGILL, 2) => "ILL_ILLOPN",
        (_, 128) => "SI_KERNEL: a non-canonical address or the like",
        _ => return format!("code {code}"),
    };
    name.to_string()
}

fn register_list(r: libc::user_regs_struct) -> Vec<(String, u64)> {
    macro_rules! named {
        ($($register:ident)*) => { vec![$((stringify!($register).to_string(), r.$register)),*] };
    }
    named!(rip rsp rbp rax rbx rcx rdx rsi rdi r8 r9 r10 r11 r12 r13 r14 r15 eflags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_outside_of_the_program() {
        let of = |names: &[&str]| {
            let place = |name: &&str| Location {
                address: 0,
                module: name.to_string(),
                function: None,
                offset: 0,
                returns: true,
            };
            inside(&names.iter().map(place).collect::<Vec<_>>())
        };
        let shim = SHIM_NAME;
        assert_eq!(
            of(&[shim, "libc.so.6", shim, "prog", "libc.so.6", shim, "libc.so.6"]),
            5,
            "a function in the place of libc's"
        );
        assert_eq!(of(&[shim, shim, "prog", "libc.so.6"]), 4);
        assert_eq!(of(&[shim, "libc.so.6", shim]), 2);
        assert_eq!(of(&[shim]), 1);
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn where_moved_instructions_were() {
        let moves = [(0x7000, 0x100), (0x7020, 0x105), (0x8000, 0x200)].map(|(at, to)| Place { at, to });
        let was = |at| before_the_move(at, &moves);
        assert_eq!([0x7000, 0x7001, 0x7020, 0x8000].map(was), [0x100, 0x105, 0x105, 0x200].map(Some));
        // Of another page, too far before the next, behind the last.
        assert_eq!([0x6fff, 0x7fff, 0x7021, 0x8001].map(was), [None; 4]);
    }
}
