//! A process as it is looked at: its threads, what they did between two looks, and where they are.
//!
//! NOTE [Who may be stopped]. Exact call stacks need registers, and these a stop. A thread is stopped only in a system call that the
//! kernel begins again by itself (signal(7)) and that leaves no trace in memory: [`begins_again`]. In all others (semop, epoll_wait,
//! a write to a pipe, ..) the program would see EINTR or a short count, so the stack is found from what /proc says of the stack and
//! program counter, and from what lies on the stack.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::unistd::Pid;

use super::descriptors::{kind, Kind};
use super::layout::{self, Glibc};
use super::proc::{self, Call};
use crate::base::text::escape;
use crate::binary::{Mapping, Modules, SymbolCache};
use crate::finding::PlaceView;
use crate::runtime::memory::ProcessMemory;
use crate::runtime::tracee::glimpse;
use crate::runtime::unwind::{returns_from_signal, ReadMemory, Regs, Unwinder};

const MAX_FRAMES: usize = 64;
/// How much of a stack is copied while its thread stands still.
const STACK_COPY: usize = 64 << 10;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It did something between two looks.
    Moving,
    /// It made no call that waits, and wants a processor at both looks.
    Computing,
    /// It was in the same call all the time.
    Waiting,
    /// A signal has stopped it, or a tracer.
    Stopped,
    /// It ended meanwhile.
    Over,
}

/// A thread at one moment: if two are equal, it has not moved between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    state: char,
    pub call: Call,
    /// Voluntary ones first.
    switches: [u64; 2],
    ticks: [u64; 2],
}

impl Mark {
    /// The call first, which the kernel tells once the thread is off the processor: then that switch is counted.
    fn of(who: &str) -> Option<Mark> {
        let call = proc::call(who);
        let (status, stat) = (proc::status(who), proc::stat(who)?);
        let switches = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        let switches = switches.map(|name| proc::number(&status, name).unwrap_or(0));
        Some(Mark { state: stat.state, call, switches, ticks: stat.ticks })
    }
}

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub tid: i32,
    /// Its id in its own namespace: what locks have.
    pub own_tid: u32,
    pub comm: String,
    pub mark: Mark,
    pub activity: Activity,
    /// The kernel's function in which it waits, if it may be told.
    pub kernel_function: Option<String>,
    /// Innermost first; without libc's outermost.
    pub frames: Vec<PlaceView>,
    /// The functions of all frames, innermost first.
    pub functions: Vec<String>,
    /// The frames were found from registers.
    pub exact: bool,
    /// It is in a signal handler, which has interrupted this function.
    pub interrupted: Option<String>,
}

/// What is kept between looks at processes, and counted.
#[derive(Default)]
pub(super) struct Tools {
    pub symbols: SymbolCache,
    unwinder: Unwinder,
    /// How long each stop of a thread took.
    pub stops: Vec<Duration>,
    /// Threads that were not stopped since their call would not have begun again.
    pub spared: usize,
    /// Why threads could not be stopped.
    pub refused: Option<String>,
}

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    pub pid: i32,
    pub comm: String,
    /// Its tracer, or 0.
    pub tracer: i32,
    pub modules: Modules,
    /// None: it must not be read.
    pub memory: Option<ProcessMemory>,
    /// Its glibc; None: it has none, or one whose layouts are not known.
    pub libc: Option<Glibc>,
    pub same_pids: bool,
    pub same_ipc: bool,
    pub threads: Vec<Thread>,
}

impl Process {
    /// Takes the first look.
    ///
    /// # Errors
    /// The process is gone, or belongs to somebody else.
    pub(super) fn open(pid: i32, tools: &mut Tools) -> io::Result<Process> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let stat = proc::stat(&pid.to_string()).ok_or_else(gone)?;
        let maps = std::fs::read(format!("/proc/{pid}/maps"))?;
        let maps = if proc::same_namespace(pid, "mnt") { maps } else { below_its_root(pid, &maps) };
        let modules = Modules::parse(&maps, &mut tools.symbols);
        let mut process = Process {
            pid,
            comm: stat.comm,
            tracer: proc::number(&proc::status(&pid.to_string()), "TracerPid").unwrap_or(0) as i32,
            memory: ProcessMemory::open_to_read(Pid::from_raw(pid)).ok(),
            libc: glibc(&modules),
            modules,
            same_pids: proc::same_namespace(pid, "pid"),
            same_ipc: proc::same_namespace(pid, "ipc"),
            threads: Vec::new(),
        };
        process.threads = proc::threads(pid).into_iter().filter_map(|tid| Thread::open(pid, tid)).collect();
        Ok(process)
    }

    /// Takes the second look.
    pub(super) fn look_again(&mut self) {
        for thread in &mut self.threads {
            thread.look_again(self.pid);
        }
    }

    /// Finds the call stacks of the threads that do not move.
    pub(super) fn find_stacks(&mut self, tools: &mut Tools) {
        let mut threads = std::mem::take(&mut self.threads);
        for thread in &mut threads {
            thread.find_stack(self, tools);
        }
        self.threads = threads;
    }

    /// Whether the threads that wait have not moved since their marks. One that is in the same place again is marked anew, as long as
    /// there is `another` look; others are moving.
    pub(super) fn check(&mut self, another: bool) -> bool {
        let mut good = true;
        for tid in proc::threads(self.pid) {
            // One that has begun meanwhile is moving.
            if !self.threads.iter().any(|thread| thread.tid == tid) {
                self.threads.extend(Thread::open(self.pid, tid));
                good = false;
            }
        }
        for thread in self.threads.iter_mut().filter(|t| t.activity == Activity::Waiting) {
            match Mark::of(&thread.path(self.pid)) {
                Some(mark) if mark == thread.mark => continue,
                Some(mark) if another && mark.call.place() == thread.mark.call.place() => thread.mark = mark,
                Some(_) => thread.activity = Activity::Moving,
                None => thread.activity = Activity::Over,
            }
            good = false;
        }
        good
    }

    /// The name of what lies at an address: a variable, or where it is.
    pub(super) fn name_of(&self, address: u64) -> String {
        let mapping = self.modules.mapping(address);
        match (self.modules.variable_name(address), mapping.filter(|m| m.perms.ends_with('s'))) {
            (Some(name), _) => name,
            // It has the same name in all processes that share it.
            (None, Some(m)) => format!("{}+{:#x}", shared_name(m), address - m.start + m.offset),
            (None, None) => format!("{address:#x} ({})", self.modules.locate(address)),
        }
    }
}

fn shared_name(mapping: &Mapping) -> String {
    let path = mapping.path.as_deref().unwrap_or(std::path::Path::new(""));
    let (bytes, _) = proc::without_deleted(path);
    let name = String::from_utf8_lossy(bytes);
    match name.strip_prefix("/SYSV") {
        _ if name == "/dev/zero" || name.is_empty() => "shared memory".into(),
        Some(key) => format!("System V shared memory {key}"),
        None => escape(&*name),
    }
}

/// Paths in a map as they are seen from here.
fn below_its_root(pid: i32, maps: &[u8]) -> Vec<u8> {
    let root = format!("/proc/{pid}/root");
    let line = |line: &[u8]| match line.iter().position(|b| *b == b'/') {
        Some(at) => [&line[..at], root.as_bytes(), &line[at..], b"\n"].concat(),
        None => [line, b"\n"].concat(),
    };
    maps.split(|b| *b == b'\n').flat_map(line).collect()
}

fn glibc(modules: &Modules) -> Option<Glibc> {
    let is_libc = |name: &str| name.starts_with("libc.so.6") || name.starts_with("libc-2.");
    match modules.modules().iter().find(|module| is_libc(&module.name())) {
        Some(libc) => layout::version(libc.elf.path()).filter(|minor| *minor >= layout::FIRST).map(Glibc::Minor),
        // These are in no other C library.
        None => {
            let own = |name: &&str| !modules.functions_named(name).is_empty();
            ["__lll_lock_wait", "__lll_lock_wait_private"].iter().any(own).then_some(Glibc::Static)
        }
    }
}

impl Thread {
    fn open(pid: i32, tid: i32) -> Option<Thread> {
        let who = format!("{pid}/task/{tid}");
        Some(Thread {
            tid,
            own_tid: proc::own_id(pid, tid),
            comm: proc::stat(&who)?.comm,
            mark: Mark::of(&who)?,
            activity: Activity::Moving,
            kernel_function: None,
            frames: Vec::new(),
            functions: Vec::new(),
            exact: false,
            interrupted: None,
        })
    }

    fn path(&self, pid: i32) -> String {
        format!("{pid}/task/{}", self.tid)
    }

    fn look_again(&mut self, pid: i32) {
        let who = self.path(pid);
        let Some(now) = Mark::of(&who) else {
            self.activity = Activity::Over;
            return;
        };
        let runs = now.call == Call::Running && self.mark.call == Call::Running;
        self.activity = match now.state {
            'T' | 't' => Activity::Stopped,
            'Z' | 'X' => Activity::Over,
            _ if now == self.mark && !runs => Activity::Waiting,
            _ if runs && now.switches[0] == self.mark.switches[0] => Activity::Computing,
            _ => Activity::Moving,
        };
        self.kernel_function = proc::kernel_function(&who);
        self.mark = now;
    }

    fn find_stack(&mut self, process: &Process, tools: &mut Tools) {
        let Some(memory) = &process.memory else { return };
        let by_registers = match self.activity {
            Activity::Computing => true,
            Activity::Waiting if self.mark.state == 'S' => match &self.mark.call {
                Call::Blocked { nr, args, .. } => begins_again(process.pid, *nr, args),
                _ => false,
            },
            _ => false,
        };
        let mut counters = None;
        if by_registers && process.tracer == 0 {
            counters = self.stop(process, memory, tools);
        } else if self.activity == Activity::Waiting {
            tools.spared += 1;
        }
        self.exact = counters.is_some();
        let counters = counters.unwrap_or_else(|| self.without_registers(process, memory, tools));
        self.take(&process.modules, memory, &counters);
    }

    /// Stops it for a moment; the program counters of its frames.
    fn stop(&mut self, process: &Process, memory: &ProcessMemory, tools: &mut Tools) -> Option<Vec<u64>> {
        const PATIENCE: Duration = Duration::from_millis(500);
        let who = self.path(process.pid);
        if self.activity == Activity::Waiting && Mark::of(&who).as_ref() != Some(&self.mark) {
            self.activity = Activity::Moving;
            return None;
        }
        let seen = glimpse(self.tid, PATIENCE, |regs| Copy::of(memory, regs.rsp));
        let seen = match seen {
            Ok(seen) => seen?,
            Err(e) => {
                tools.refused = Some(e.to_string());
                return None;
            }
        };
        tools.stops.push(seen.stopped);
        if self.activity == Activity::Waiting {
            self.settle(&who);
        }
        let regs = Regs::from(&seen.regs);
        Some(tools.unwinder.backtrace(process.modules.mappings(), &seen.read, regs, MAX_FRAMES))
    }

    /// Waits until it is back in its call, and notes that. If it is somewhere else then, it is moving.
    fn settle(&mut self, who: &str) {
        for _ in 0..5000 {
            let Some(now) = Mark::of(who) else { break };
            if let Some(at) = now.call.place() {
                let same = Some(at) == self.mark.call.place();
                self.activity = if same { Activity::Waiting } else { Activity::Moving };
                self.mark = now;
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        self.activity = Activity::Moving;
    }

    /// The frames by what /proc says of it alone. Where the caller of a frame is found by rbp, each place on the stack that looks like a
    /// saved rbp with a return address is tried, the innermost first, until one leads to where threads begin.
    fn without_registers(&self, process: &Process, memory: &ProcessMemory, tools: &mut Tools) -> Vec<u64> {
        const REACH: u64 = 32 << 10;
        const TRIES: usize = 64;
        let Call::Blocked { sp, pc, .. } = self.mark.call else { return Vec::new() };
        let copy = Copy::of(memory, sp);
        let maps = process.modules.mappings();
        let mut walk = |rbp: u64| {
            let mut regs = Regs { rip: pc, ..Regs::default() };
            (regs.general[6], regs.general[7]) = (rbp, sp);
            let counters = tools.unwinder.backtrace(maps, &copy, regs, MAX_FRAMES);
            let whole = counters.iter().skip(1).any(|&at| is_begin(&process.modules, at));
            (counters, whole)
        };
        let (first, whole) = walk(0);
        if whole {
            return first;
        }
        let executable = |at: u64| process.modules.mapping(at).is_some_and(|m| m.is_executable());
        let looks_like_rbp = |at: &u64| {
            let (saved, to) = (copy.read_u64(*at), copy.read_u64(*at + 8));
            saved.is_some_and(|saved| saved > *at && saved - at < 1 << 20) && to.is_some_and(executable)
        };
        let places = (sp..sp.saturating_add(REACH)).step_by(8).filter(looks_like_rbp).take(TRIES);
        let found = places.map(walk).find(|(_, whole)| *whole);
        found.map_or(first, |(counters, _)| counters)
    }

    fn take(&mut self, modules: &Modules, memory: &ProcessMemory, counters: &[u64]) {
        let location = |(i, &at): (usize, &u64)| if i == 0 { modules.locate(at) } else { modules.locate_return(at) };
        let all: Vec<_> = counters.iter().enumerate().map(location).collect();
        let handler = counters.iter().position(|&at| returns_from_signal(memory, at));
        // What is interrupted is shown by the function of the program's, or of libc's, that was called.
        let below = handler.map(|handler| all[handler + 1..].iter().filter_map(|at| at.function.clone()));
        self.interrupted = below.and_then(|mut functions| functions.find(|name| !name.starts_with('_')));
        self.functions = all.iter().filter_map(|at| at.function.clone()).collect();
        let mut places: Vec<PlaceView> = all.iter().map(|at| modules.shown(at)).collect();
        // How libc comes to the program says nothing.
        if let Some(begin) = all.iter().position(|at| at.function.as_deref().is_some_and(|name| BEGINS.contains(&name)))
        {
            places.truncate(begin.max(1));
        }
        let own = |place: &PlaceView| !place.is_of_libc() && !place.symbol.starts_with("_start+");
        if let Some(last) = places.iter().rposition(own) {
            places.truncate(last + 1);
        }
        let first = places.iter().position(|place| !place.symbol.starts_with("libc.so.6+")).unwrap_or(0);
        self.frames = places.split_off(first);
    }
}

/// The functions of libc and of the start code in which threads begin.
const BEGINS: [&str; 7] =
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone3", "clone", "__clone3"];

fn is_begin(modules: &Modules, at: u64) -> bool {
    modules.locate_return(at).function.is_some_and(|name| BEGINS.contains(&name.as_str()))
}

/// Memory with a part of the stack as it was at one moment.
struct Copy<'a> {
    from: u64,
    bytes: Vec<u8>,
    rest: &'a ProcessMemory,
}

impl Copy<'_> {
    /// From a little below the stack pointer on; less where less is mapped.
    fn of(memory: &ProcessMemory, sp: u64) -> Copy<'_> {
        const PAGE: u64 = 4096;
        let from = sp.saturating_sub(128);
        let mut bytes = vec![0; STACK_COPY];
        while bytes.len() >= PAGE as usize && memory.read(from, &mut bytes).is_err() {
            // The stack ends at a page.
            let end = (from + bytes.len() as u64 - 1) & !(PAGE - 1);
            bytes.truncate(end.saturating_sub(from) as usize);
        }
        Copy { from, bytes, rest: memory }
    }
}

impl ReadMemory for Copy<'_> {
    fn read_u64(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        let bytes = at.and_then(|at| self.bytes.get(at..at.checked_add(8)?));
        match bytes.and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => Some(u64::from_le_bytes(bytes)),
            None => ReadMemory::read_u64(self.rest, address),
        }
    }
}

/// Whether a system call that is interrupted by a stop begins again unseen by the program: see NOTE [Who may be stopped].
fn begins_again(pid: i32, nr: i64, args: &[u64; 6]) -> bool {
    const FUTEX_COMMAND: u64 = 0x7f;
    const FUTEX_WAITS: [u64; 4] = [0, 6, 9, 13]; // WAIT, LOCK_PI, WAIT_BITSET, LOCK_PI2
    match nr {
        libc::SYS_futex => FUTEX_WAITS.contains(&(args[1] & FUTEX_COMMAND)),
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_pause | libc::SYS_flock | libc::SYS_poll => true,
        libc::SYS_msgrcv | libc::SYS_msgsnd => true,
        // The time that is left is written to the program's memory.
        libc::SYS_select | libc::SYS_pselect6 => args[4] == 0,
        libc::SYS_ppoll => args[2] == 0,
        libc::SYS_fcntl => matches!(args[1] as i32, libc::F_SETLKW | libc::F_OFD_SETLKW),
        libc::SYS_read => {
            matches!(kind(pid, args[0] as i32), Some(Kind::Pipe(_) | Kind::Fifo(..) | Kind::Event(_)))
        }
        _ => false,
    }
}

/// The file name of the program, as its link says.
pub(super) fn program_of(pid: i32) -> String {
    let exe = proc::link(pid, "exe").unwrap_or_default();
    let (path, _) = proc::without_deleted(&exe);
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    std::ffi::OsStr::from_bytes(name).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_begin_again() {
        let again = |nr, args: [u64; 6]| begins_again(-1, nr, &args);
        for nr in [libc::SYS_semop, libc::SYS_semtimedop, libc::SYS_epoll_wait, libc::SYS_write, libc::SYS_recvfrom] {
            assert!(!again(nr, [0; 6]), "{nr}");
        }
        for nr in [libc::SYS_nanosleep, libc::SYS_rt_sigtimedwait, libc::SYS_io_uring_enter, -1, libc::SYS_read] {
            assert!(!again(nr, [0; 6]), "{nr}");
        }
        assert!(again(libc::SYS_futex, [0, 0x80, 2, 0, 0, 0]) && again(libc::SYS_futex, [0, 0x189, 2, 0, 0, 0]));
        assert!(!again(libc::SYS_futex, [0, 0x8b, 0, 0, 0, 0]), "FUTEX_WAIT_REQUEUE_PI");
        assert!(again(libc::SYS_select, [1, 0, 0, 0, 0, 0]) && !again(libc::SYS_select, [1, 0, 0, 0, 8, 0]));
        assert!(again(libc::SYS_wait4, [0; 6]) && again(libc::SYS_flock, [0; 6]));
    }

    #[test]
    fn maps_of_another_root() {
        let maps = b"1-2 r-xp 0 08:01 7   /lib/a b.so\n3-4 rw-p 0 00:00 0 [heap]\n";
        let text = String::from_utf8(below_its_root(9, maps)).unwrap();
        assert!(text.contains(" /proc/9/root/lib/a b.so\n") && text.contains("0 [heap]\n"), "{text}");
    }

    #[test]
    fn a_copy_of_memory_and_what_lies_beyond() {
        let memory = ProcessMemory::open_to_read(Pid::this()).unwrap();
        let words = [1u64, 2, 3];
        let at = words.as_ptr() as u64;
        let copy = Copy { from: at, bytes: 7u64.to_le_bytes().to_vec(), rest: &memory };
        assert_eq!((copy.read_u64(at), copy.read_u64(at + 8)), (Some(7), Some(2)));
        assert_eq!(copy.read_u64(u64::MAX), None);
        assert!(Copy::of(&memory, at).bytes.len() >= 24);
        assert_eq!(Copy::of(&memory, 8).bytes.len() / 4096, 0);
    }
}
