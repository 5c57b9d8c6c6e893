//! Traced processes as types, and their launch.
//!
//! A tracee is a [`Stopped`] or a [`Running`], and only the first has operations that need it to stand still: to touch
//! a running tracee does not compile. Waiting yields an [`Event`].
//!
//! NOTE [Death is data]. A stopped tracee can be killed by anyone at any moment; then every request says ESRCH. That is
//! [`TraceError::Died`], apart from what really failed, and [`Stopped::resume`] does not even mention it: the tracee
//! runs to its end, and the end arrives by [`Running::wait`], as [`Event::Signaled`].
//!
//! NOTE [One thread]. The kernel lets only the thread that attached (here: that called [`launch`]) use a tracee, and
//! says ESRCH to all others. So these types are not `Send`. That thread's end also kills the tracees: the parent-death
//! signal and PTRACE_O_EXITKILL follow the thread, not the process.
//!
//! NOTE [Real-time signals]. nix knows the signals up to 31 only, and its `waitpid` fails on the others, which a tracee
//! does get (32 and 33 are glibc's own, for pthread_cancel and setuid). So statuses and signals are decoded here.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sched::CpuSet;
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::ptrace::{self, Options};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::unistd::{self, Pid};

use super::memory::{MemoryError, ProcessMemory};

/// The soft limit of the main stack that every launched program gets, in bytes. The kernel derives the place of all
/// mappings from it.
pub const STACK_LIMIT: u64 = 8 << 20;

// ---------------------------------------------------------------------------------------------------------- signals

/// A signal number, 1 to 64, real-time signals included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(i32);

impl Signal {
    /// The signal of that number, if there is one.
    pub const fn from_number(number: i32) -> Option<Signal> {
        match number {
            1..=64 => Some(Signal(number)),
            _ => None,
        }
    }

    /// Its number on x86-64.
    pub const fn number(self) -> i32 {
        self.0
    }

    fn stops(self) -> bool {
        matches!(self.0, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
    }
}

impl From<nix::sys::signal::Signal> for Signal {
    fn from(signal: nix::sys::signal::Signal) -> Signal {
        Signal(signal as i32)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        const FIRST_REAL_TIME: i32 = 34; // of those that glibc leaves to programs
        match nix::sys::signal::Signal::try_from(self.0) {
            Ok(signal) => f.write_str(signal.as_str()),
            Err(_) if self.0 >= FIRST_REAL_TIME => write!(f, "SIGRTMIN+{}", self.0 - FIRST_REAL_TIME),
            Err(_) => write!(f, "signal {}", self.0),
        }
    }
}

// ----------------------------------------------------------------------------------------------------------- errors

/// A ptrace or wait operation that gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// The tracee is dead or dying: not a failure, see NOTE [Death is data].
    Died {
        /// What was tried.
        operation: &'static str,
        /// The tracee.
        pid: Pid,
    },
    /// The operation failed.
    Failed {
        /// What was tried.
        operation: &'static str,
        /// The tracee.
        pid: Pid,
        /// What the system said.
        errno: Errno,
    },
    /// A wait status that means nothing known.
    Status {
        /// The child it was given for.
        pid: Pid,
        /// The status.
        status: WaitStatus,
    },
}

impl TraceError {
    fn new(operation: &'static str, pid: Pid, errno: Errno) -> TraceError {
        match errno {
            Errno::ESRCH => TraceError::Died { operation, pid },
            errno => TraceError::Failed { operation, pid, errno },
        }
    }

    /// Whether all that happened is that the tracee died.
    pub fn is_death(&self) -> bool {
        matches!(self, TraceError::Died { .. })
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            TraceError::Died { operation, pid } => write!(f, "{operation}: process {pid} is dead"),
            TraceError::Failed { operation, pid, errno } => {
                write!(f, "{operation} of process {pid} failed: {}", errno.desc())
            }
            TraceError::Status { pid, status } => write!(f, "process {pid}: unknown wait status {:#x}", status.0),
        }
    }
}

impl std::error::Error for TraceError {}

// ----------------------------------------------------------------------------------------------------------- events

/// A status as `waitpid` returns it, not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitStatus(i32);

impl WaitStatus {
    /// Takes the integer that `waitpid` or an exit stop's event message gave.
    pub const fn from_raw(raw: i32) -> WaitStatus {
        WaitStatus(raw)
    }

    /// The integer.
    pub const fn raw(self) -> i32 {
        self.0
    }
}

/// What [`wait_any`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// That child changed its state. [`Event::decode`] says how.
    Changed(Pid, WaitStatus),
    /// There are children, but none changed its state (only if not told to block).
    NothingYet,
    /// There are no children to wait for.
    NoChildren,
    /// A signal handler of this process ran meanwhile.
    Interrupted,
}

/// Waits for any child or tracee of the calling thread's process; the heart of a central loop.
pub fn wait_any(block: bool) -> Result<Waited, TraceError> {
    let any = Pid::from_raw(-1);
    match wait_raw(any, if block { 0 } else { libc::WNOHANG }) {
        Ok(Some((pid, status))) => Ok(Waited::Changed(pid, status)),
        Ok(None) => Ok(Waited::NothingYet),
        Err(Errno::ECHILD) => Ok(Waited::NoChildren),
        Err(Errno::EINTR) => Ok(Waited::Interrupted),
        Err(errno) => Err(TraceError::new("wait", any, errno)),
    }
}

fn wait_raw(pid: Pid, flags: libc::c_int) -> nix::Result<Option<(Pid, WaitStatus)>> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for an int, and the only memory that waitpid writes.
    let changed = Errno::result(unsafe { libc::waitpid(pid.as_raw(), &mut status, flags | libc::__WALL) })?;
    Ok((changed != 0).then_some((Pid::from_raw(changed), WaitStatus(status))))
}

/// Why a tracee stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The signal is about to be delivered: pass it to [`Stopped::resume`], or it is lost. Traps of single steps and
    /// breakpoints are SIGTRAP.
    Signal(Signal),
    /// It executes a new program, of which nothing has run yet.
    Exec,
    /// It forked; the child is traced too and stops on its own.
    Fork(Pid),
    /// It vforked; the child is traced too and stops on its own.
    Vfork(Pid),
    /// Its vfork child has let go of the memory.
    VforkDone,
    /// It made a thread, or a process by clone with an exit signal other than SIGCHLD; traced too, stops on its own.
    Clone(Pid),
    /// It is about to exit; its memory still stands. The event message is its [`WaitStatus`].
    Exit,
    /// Job control: all its threads are stopped by that signal.
    GroupStop(Signal),
    /// It enters or leaves a system call (only after [`Stopped::resume_to_syscall`], with PTRACE_O_TRACESYSGOOD).
    Syscall,
    /// Another PTRACE_EVENT, by number.
    Other(i32),
}

/// What happened to a tracee.
#[derive(Debug)]
#[must_use]
pub enum Event {
    /// It stands still.
    Stopped(Stopped),
    /// It is gone; it exited.
    Exited {
        /// Who.
        pid: Pid,
        /// The exit code, 0 to 255.
        code: i32,
    },
    /// It is gone; a signal killed it.
    Signaled {
        /// Who.
        pid: Pid,
        /// Which signal.
        signal: Signal,
        /// Whether the kernel wrote a core dump.
        core: bool,
    },
    /// It had stopped, but was killed before it could be asked why. Its end is still to be waited for.
    Dying(Running),
}

impl Event {
    /// The meaning of a status that `waitpid` (in a central loop, see [`wait_any`]) returned for a tracee. To be called
    /// once for each status, by the tracing thread, before the tracee is resumed.
    pub fn decode(pid: Pid, status: WaitStatus) -> Result<Event, TraceError> {
        let raw = status.0;
        if libc::WIFEXITED(raw) {
            return Ok(Event::Exited { pid, code: libc::WEXITSTATUS(raw) });
        }
        if libc::WIFSIGNALED(raw) {
            let unknown = TraceError::Status { pid, status };
            let signal = Signal::from_number(libc::WTERMSIG(raw)).ok_or(unknown)?;
            return Ok(Event::Signaled { pid, signal, core: libc::WCOREDUMP(raw) });
        }
        if !libc::WIFSTOPPED(raw) {
            return Err(TraceError::Status { pid, status });
        }
        match reason(pid, status) {
            Ok(reason) => Ok(Event::Stopped(Stopped { pid, status, reason, one_thread: PhantomData })),
            Err(e) if e.is_death() => Ok(Event::Dying(Running::traced(pid))),
            Err(e) => Err(e),
        }
    }
}

/// The reason of a stop. Some of it is in the status, some must be asked for.
fn reason(pid: Pid, status: WaitStatus) -> Result<Reason, TraceError> {
    let stop_signal = libc::WSTOPSIG(status.0);
    if stop_signal == libc::SIGTRAP | 0x80 {
        return Ok(Reason::Syscall);
    }
    let signal = Signal::from_number(stop_signal).ok_or(TraceError::Status { pid, status })?;
    match status.0 >> 16 {
        0 if signal.stops() && is_group_stop(pid)? => Ok(Reason::GroupStop(signal)),
        0 => Ok(Reason::Signal(signal)),
        libc::PTRACE_EVENT_EXEC => Ok(Reason::Exec),
        libc::PTRACE_EVENT_FORK => Ok(Reason::Fork(new_process(pid)?)),
        libc::PTRACE_EVENT_VFORK => Ok(Reason::Vfork(new_process(pid)?)),
        libc::PTRACE_EVENT_CLONE => Ok(Reason::Clone(new_process(pid)?)),
        libc::PTRACE_EVENT_VFORK_DONE => Ok(Reason::VforkDone),
        libc::PTRACE_EVENT_EXIT => Ok(Reason::Exit),
        libc::PTRACE_EVENT_STOP if signal.stops() => Ok(Reason::GroupStop(signal)),
        other => Ok(Reason::Other(other)),
    }
}

/// The signals of job control stop twice: when they are about to be delivered, with a siginfo, and then, once
/// delivered, the whole group, without one.
fn is_group_stop(pid: Pid) -> Result<bool, TraceError> {
    match ptrace::getsiginfo(pid) {
        Ok(_) => Ok(false),
        Err(Errno::EINVAL) => Ok(true),
        Err(errno) => Err(TraceError::new("get siginfo", pid, errno)),
    }
}

fn new_process(pid: Pid) -> Result<Pid, TraceError> {
    let message = ptrace::getevent(pid).map_err(|errno| TraceError::new("get event message", pid, errno))?;
    Ok(Pid::from_raw(message as i32))
}

// ------------------------------------------------------------------------------------------------- the two states

/// Makes a type stay in the thread that made it: see NOTE [One thread].
type OneThread = PhantomData<*const ()>;

/// A tracee that stands still. One that is dropped stands still until this process ends.
#[derive(Debug)]
#[must_use = "a stopped tracee stays so until it is resumed"]
pub struct Stopped {
    pid: Pid,
    status: WaitStatus,
    reason: Reason,
    one_thread: OneThread,
}

/// A tracee that runs, or is dead and not yet waited for.
#[derive(Debug)]
#[must_use = "a tracee must be waited for"]
pub struct Running {
    pid: Pid,
    one_thread: OneThread,
}

impl Stopped {
    /// The process, or the thread of a process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The status that told of the stop.
    pub fn status(&self) -> WaitStatus {
        self.status
    }

    /// Why it stopped.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Lets it run, with a signal delivered if one is given.
    pub fn resume(self, signal: Option<Signal>) -> Result<Running, TraceError> {
        self.restart("resume", libc::PTRACE_CONT, signal)
    }

    /// Lets it execute one instruction (or enter the signal's handler), then stop with SIGTRAP.
    pub fn step(self, signal: Option<Signal>) -> Result<Running, TraceError> {
        self.restart("single step", libc::PTRACE_SINGLESTEP, signal)
    }

    /// Lets it run to the next entry to or return from a system call.
    pub fn resume_to_syscall(self, signal: Option<Signal>) -> Result<Running, TraceError> {
        self.restart("resume to the next system call", libc::PTRACE_SYSCALL, signal)
    }

    fn restart(
        self,
        operation: &'static str,
        request: libc::c_uint,
        signal: Option<Signal>,
    ) -> Result<Running, TraceError> {
        match plain_request(request, self.pid, signal.map_or(0, Signal::number)) {
            Ok(()) | Err(Errno::ESRCH) => Ok(Running::traced(self.pid)),
            Err(errno) => Err(TraceError::new(operation, self.pid, errno)),
        }
    }

    /// The general registers.
    pub fn regs(&self) -> Result<libc::user_regs_struct, TraceError> {
        ptrace::getregs(self.pid).map_err(|errno| TraceError::new("get registers", self.pid, errno))
    }

    /// Sets the general registers.
    pub fn set_regs(&mut self, regs: &libc::user_regs_struct) -> Result<(), TraceError> {
        ptrace::setregs(self.pid, *regs).map_err(|errno| TraceError::new("set registers", self.pid, errno))
    }

    /// What the kernel says about the signal it stopped with. There is none in a group stop: `Failed` with EINVAL.
    pub fn siginfo(&self) -> Result<libc::siginfo_t, TraceError> {
        ptrace::getsiginfo(self.pid).map_err(|errno| TraceError::new("get siginfo", self.pid, errno))
    }

    /// The message of the event it stopped with: a new process's id, an exit status, the id before an exec.
    pub fn event_message(&self) -> Result<u64, TraceError> {
        let message = ptrace::getevent(self.pid);
        message.map(|m| m as u64).map_err(|errno| TraceError::new("get event message", self.pid, errno))
    }

    /// Sets the options, all of them: those not named are switched off, PTRACE_O_EXITKILL too.
    pub fn set_options(&mut self, options: Options) -> Result<(), TraceError> {
        ptrace::setoptions(self.pid, options).map_err(|errno| TraceError::new("set options", self.pid, errno))
    }

    /// Sends SIGKILL to the process. [`Running::reap`] then waits for its end.
    pub fn kill(self) -> Result<Running, TraceError> {
        let running = Running::traced(self.pid);
        running.kill()?;
        Ok(running)
    }

    /// Lets it run untraced, with a signal delivered if one is given.
    pub fn detach(self, signal: Option<Signal>) -> Result<(), TraceError> {
        match plain_request(libc::PTRACE_DETACH, self.pid, signal.map_or(0, Signal::number)) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(TraceError::new("detach", self.pid, errno)),
        }
    }
}

impl Running {
    /// A tracee known by its id: one that [`Reason::Fork`], `Vfork` or `Clone` announced, or that a central loop has
    /// resumed. For a child that is not traced, [`Running::wait`] waits for its end.
    pub fn traced(pid: Pid) -> Running {
        Running { pid, one_thread: PhantomData }
    }

    /// The process, or the thread of a process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for what happens to it next. [`Event::Dying`] does not occur here: it waits on, for the end.
    pub fn wait(self) -> Result<Event, TraceError> {
        loop {
            let (pid, status) = match wait_raw(self.pid, 0) {
                Ok(Some(changed)) => changed,
                Ok(None) | Err(Errno::EINTR) => continue,
                Err(Errno::ECHILD) => return Err(TraceError::Died { operation: "wait", pid: self.pid }),
                Err(errno) => return Err(TraceError::new("wait", self.pid, errno)),
            };
            match Event::decode(pid, status)? {
                Event::Dying(_) => continue,
                event => return Ok(event),
            }
        }
    }

    /// Makes it stop soon, with [`Reason::Signal`] SIGSTOP, which must then not be passed on.
    pub fn interrupt(&self) -> Result<(), TraceError> {
        // SAFETY: tkill takes two numbers and touches no memory of this process.
        match Errno::result(unsafe { libc::syscall(libc::SYS_tkill, self.pid.as_raw(), libc::SIGSTOP) }) {
            Ok(_) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(TraceError::new("interrupt", self.pid, errno)),
        }
    }

    /// Sends SIGKILL to the process. That it is dead already is no error.
    pub fn kill(&self) -> Result<(), TraceError> {
        match nix::sys::signal::kill(self.pid, nix::sys::signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(TraceError::new("kill", self.pid, errno)),
        }
    }

    /// Waits for its end, and resumes it from all stops before (a killed process may still make an exit stop). Other
    /// traced threads of the same process must be waited for first, or the end of its first thread does not come.
    pub fn reap(self) -> Result<Event, TraceError> {
        let mut running = self;
        loop {
            match running.wait()? {
                Event::Stopped(stopped) => running = stopped.resume(None)?,
                Event::Dying(dying) => running = dying,
                end => return Ok(end),
            }
        }
    }
}

/// The address that an instruction faulted at (SIGSEGV, SIGBUS) or is itself at (SIGILL, SIGFPE, SIGTRAP); None for a
/// signal that was sent, and for a fault whose address the processor does not tell.
pub fn fault_address(info: &libc::siginfo_t) -> Option<u64> {
    const SI_KERNEL: libc::c_int = 0x80;
    let is_fault = matches!(info.si_signo, libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP);
    // SAFETY: for these signals, and a code that only the kernel gives, the union holds the address.
    let address = || unsafe { info.si_addr() } as u64;
    (is_fault && info.si_code > 0 && info.si_code != SI_KERNEL).then(address)
}

/// A request that takes a number and no address.
fn plain_request(request: libc::c_uint, pid: Pid, number: i32) -> nix::Result<()> {
    // SAFETY: the requests given by this file (CONT, SINGLESTEP, SYSCALL, DETACH) ignore the address and read the data
    // as a signal number, so the kernel touches no memory of this process.
    let result =
        unsafe { libc::ptrace(request, pid.as_raw(), ptr::null_mut::<libc::c_void>(), libc::c_long::from(number)) };
    Errno::result(result).map(drop)
}

// ----------------------------------------------------------------------------------------------------------- launch

/// A program to be started, and all of its surroundings.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// The file to execute; not searched for in PATH. A relative name counts from `cwd`.
    pub exe: PathBuf,
    /// The arguments, the program's name first.
    pub argv: Vec<OsString>,
    /// The environment, `NAME=value` each, in this order.
    pub envp: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// What becomes its standard input, output and error.
    pub stdio: [RawFd; 3],
    /// More descriptors it gets: ours, and the number it finds it at. All others are closed.
    pub inherit: Vec<(RawFd, RawFd)>,
    /// The CPU it is bound to, with all its descendants.
    pub cpu: Option<usize>,
}

/// What a new process does on its way to become the program, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LaunchStep {
    /// Ask to be killed when the parent dies.
    DeathSignal,
    /// Check that the parent has not died before that.
    Parent,
    /// Default dispositions and an empty mask for all signals.
    Signals,
    /// Become the leader of a new session.
    Session,
    /// Switch address randomization off.
    Personality,
    /// No core dumps.
    CoreLimit,
    /// A stack limit of [`STACK_LIMIT`].
    StackLimit,
    /// No transparent huge pages.
    HugePages,
    /// Bind to a CPU.
    Cpu,
    /// Change the working directory.
    Directory,
    /// Put the descriptors where they belong.
    Descriptors,
    /// Ask to be traced.
    TraceMe,
    /// Execute the program.
    Exec,
}

impl LaunchStep {
    const ALL: [LaunchStep; 13] = [
        LaunchStep::DeathSignal,
        LaunchStep::Parent,
        LaunchStep::Signals,
        LaunchStep::Session,
        LaunchStep::Personality,
        LaunchStep::CoreLimit,
        LaunchStep::StackLimit,
        LaunchStep::HugePages,
        LaunchStep::Cpu,
        LaunchStep::Directory,
        LaunchStep::Descriptors,
        LaunchStep::TraceMe,
        LaunchStep::Exec,
    ];
}

impl fmt::Display for LaunchStep {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            LaunchStep::DeathSignal => "set the parent-death signal (prctl PR_SET_PDEATHSIG)",
            LaunchStep::Parent => "stay with the parent",
            LaunchStep::Signals => "reset the signals",
            LaunchStep::Session => "start a session (setsid)",
            LaunchStep::Personality => "switch address randomization off (personality ADDR_NO_RANDOMIZE)",
            LaunchStep::CoreLimit => "switch core dumps off (setrlimit RLIMIT_CORE)",
            LaunchStep::StackLimit => "set the stack limit to 8 MiB (setrlimit RLIMIT_STACK)",
            LaunchStep::HugePages => "switch huge pages off (prctl PR_SET_THP_DISABLE)",
            LaunchStep::Cpu => "bind to a CPU (sched_setaffinity)",
            LaunchStep::Directory => "change the working directory (chdir)",
            LaunchStep::Descriptors => "place the file descriptors",
            LaunchStep::TraceMe => "be traced (ptrace PTRACE_TRACEME)",
            LaunchStep::Exec => "execute it (execve)",
        })
    }
}

/// Why a program was not started. All but `Step` and `NulByte` are unexpected.
#[derive(Debug)]
pub enum LaunchError {
    /// A NUL byte in what would be a C string.
    NulByte {
        /// "program", "argument", "environment" or "directory".
        what: &'static str,
        /// The text.
        text: OsString,
    },
    /// The new process could not do one of the steps.
    Step {
        /// Which.
        step: LaunchStep,
        /// What the system said.
        errno: Errno,
    },
    /// There was no new process: pipe or fork failed.
    NoProcess(Errno),
    /// The new process ended before it was the program, and did not say why. The text says how.
    DiedEarly(String),
    /// Tracing it failed.
    Trace(TraceError),
    /// Its memory could not be read or written.
    Memory(MemoryError),
    /// The stack of the new program is not as the kernel makes it.
    Stack(&'static str),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LaunchError::NulByte { what, text } => write!(f, "{what} {text:?} contains a NUL byte"),
            LaunchError::Step { step, errno } => write!(f, "cannot {step}: {}", errno.desc()),
            LaunchError::NoProcess(errno) => write!(f, "cannot create a process: {}", errno.desc()),
            LaunchError::DiedEarly(how) => write!(f, "the new process ended before it was the program: {how}"),
            LaunchError::Trace(e) => e.fmt(f),
            LaunchError::Memory(e) => e.fmt(f),
            LaunchError::Stack(what) => write!(f, "the stack of the new program has {what}"),
        }
    }
}

impl std::error::Error for LaunchError {}

impl From<TraceError> for LaunchError {
    fn from(e: TraceError) -> LaunchError {
        LaunchError::Trace(e)
    }
}

impl From<MemoryError> for LaunchError {
    fn from(e: MemoryError) -> LaunchError {
        LaunchError::Memory(e)
    }
}

/// A step that failed, as the child reports it.
#[derive(Clone, Copy)]
struct Failure {
    step: LaunchStep,
    errno: Errno,
}

impl Failure {
    fn at(step: LaunchStep) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { step, errno }
    }

    fn to_bytes(self) -> [u8; 5] {
        let errno = (self.errno as i32).to_le_bytes();
        [self.step as u8, errno[0], errno[1], errno[2], errno[3]]
    }

    fn from_bytes(bytes: [u8; 5]) -> Option<Failure> {
        let step = *LaunchStep::ALL.get(usize::from(bytes[0]))?;
        Some(Failure { step, errno: Errno::from_raw(i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]])) })
    }
}

impl From<Failure> for LaunchError {
    fn from(Failure { step, errno }: Failure) -> LaunchError {
        LaunchError::Step { step, errno }
    }
}

/// C strings and the array of pointers to them that execve wants.
struct Strings {
    /// invariant: ends with a null pointer; the others point into `_owner`, which does not change.
    pointers: Vec<*const libc::c_char>,
    _owner: Vec<CString>,
}

impl Strings {
    fn new(what: &'static str, texts: &[OsString]) -> Result<Strings, LaunchError> {
        let owner = texts.iter().map(|text| c_string(what, text)).collect::<Result<Vec<_>, _>>()?;
        let pointers = owner.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(Strings { pointers, _owner: owner })
    }
}

fn c_string(what: &'static str, text: &OsStr) -> Result<CString, LaunchError> {
    CString::new(text.as_bytes()).map_err(|_| LaunchError::NulByte { what, text: text.to_os_string() })
}

/// Everything a process needs to become the program, made beforehand: it must not allocate on the way, for in a fork of
/// a process with threads another one may have held the allocator's lock.
struct Plan {
    exe: CString,
    argv: Strings,
    envp: Strings,
    cwd: CString,
    cpu: Option<CpuSet>,
    /// (ours, the number the program finds it at, a copy out of the way of all such numbers)
    descriptors: Vec<(RawFd, RawFd, RawFd)>,
    /// The first number that is out of the way.
    free_from: RawFd,
    /// Where a failed step is reported. Moved out of the way too.
    report: Option<RawFd>,
    parent: Pid,
    traced: bool,
    /// This process has its own parent and may have its own session.
    in_place: bool,
}

impl Plan {
    fn new(spec: &LaunchSpec) -> Result<Plan, LaunchError> {
        let stdio = spec.stdio.iter().copied().zip(0..);
        let descriptors: Vec<_> = stdio.chain(spec.inherit.iter().copied()).map(|(from, to)| (from, to, -1)).collect();
        let free_from = descriptors.iter().map(|(_, to, _)| to.saturating_add(1)).max().unwrap_or(0);
        let cpu = spec.cpu.map(only_cpu).transpose().map_err(Failure::at(LaunchStep::Cpu))?;
        Ok(Plan {
            exe: c_string("program", spec.exe.as_os_str())?,
            argv: Strings::new("argument", &spec.argv)?,
            envp: Strings::new("environment", &spec.envp)?,
            cwd: c_string("directory", spec.cwd.as_os_str())?,
            cpu,
            descriptors,
            free_from,
            report: None,
            parent: Pid::this(),
            traced: false,
            in_place: false,
        })
    }

    /// Turns the calling process into the program; returns only if that fails. Async-signal-safe.
    fn carry_out(&mut self) -> Failure {
        match self.prepare().and_then(|()| self.trace_me()) {
            Ok(()) => self.exec(),
            Err(failure) => failure,
        }
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        use LaunchStep as Step;
        prctl::set_pdeathsig(nix::sys::signal::SIGKILL).map_err(Failure::at(Step::DeathSignal))?;
        if unistd::getppid() != self.parent {
            return Err(Failure { step: Step::Parent, errno: Errno::ESRCH });
        }
        reset_signals().map_err(Failure::at(Step::Signals))?;
        self.new_session().map_err(Failure::at(Step::Session))?;
        personality::set(Persona::ADDR_NO_RANDOMIZE).map_err(Failure::at(Step::Personality))?;
        set_soft_limit(Resource::RLIMIT_CORE, 0).map_err(Failure::at(Step::CoreLimit))?;
        set_soft_limit(Resource::RLIMIT_STACK, STACK_LIMIT).map_err(Failure::at(Step::StackLimit))?;
        prctl::set_thp_disable(true).map_err(Failure::at(Step::HugePages))?;
        if let Some(cpu) = &self.cpu {
            nix::sched::sched_setaffinity(Pid::from_raw(0), cpu).map_err(Failure::at(Step::Cpu))?;
        }
        unistd::chdir(self.cwd.as_c_str()).map_err(Failure::at(Step::Directory))?;
        self.place_descriptors().map_err(Failure::at(Step::Descriptors))
    }

    /// A process that already leads a group cannot start a session. If it is not ours to fork, that must do.
    fn new_session(&self) -> nix::Result<()> {
        match unistd::setsid() {
            Err(Errno::EPERM) if self.in_place => Ok(()),
            result => result.map(drop),
        }
    }

    /// Puts each descriptor at its number, by way of a copy above all such numbers, since one may sit on another's
    /// place; everything else is closed at the exec.
    fn place_descriptors(&mut self) -> nix::Result<()> {
        let aside = FcntlArg::F_DUPFD_CLOEXEC(self.free_from);
        if let Some(report) = self.report.as_mut() {
            *report = fcntl(*report, aside)?;
        }
        for (from, _, copy) in &mut self.descriptors {
            *copy = fcntl(*from, FcntlArg::F_DUPFD_CLOEXEC(self.free_from))?;
        }
        close_at_exec_from(3)?;
        for (_, to, copy) in &self.descriptors {
            unistd::dup2(*copy, *to)?;
        }
        Ok(())
    }

    /// Becomes a tracee and stops, so that the tracer can set its options before the exec.
    fn trace_me(&self) -> Result<(), Failure> {
        if !self.traced {
            return Ok(());
        }
        let stop = || nix::sys::signal::raise(nix::sys::signal::SIGSTOP);
        ptrace::traceme().and_then(|()| stop()).map_err(Failure::at(LaunchStep::TraceMe))
    }

    fn exec(&self) -> Failure {
        // SAFETY: `exe` is a C string; both arrays end with a null pointer and point to C strings that `self` owns.
        unsafe { libc::execve(self.exe.as_ptr(), self.argv.pointers.as_ptr(), self.envp.pointers.as_ptr()) };
        Failure { step: LaunchStep::Exec, errno: Errno::last() }
    }

    /// What the forked child does.
    fn carry_out_in_child(&mut self) -> ! {
        let failure = self.carry_out();
        if let Some(report) = self.report {
            let bytes = failure.to_bytes();
            // SAFETY: `bytes` is valid for its length. If the write fails, there is no one left to tell.
            unsafe { libc::write(report, bytes.as_ptr().cast(), bytes.len()) };
        }
        exit_now(127)
    }
}

fn only_cpu(cpu: usize) -> nix::Result<CpuSet> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(set)
}

fn set_soft_limit(resource: Resource, soft: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    setrlimit(resource, soft, hard)
}

/// Ends the process at once, without handlers of `atexit`.
fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes a number, does not return and runs no code of this process.
    unsafe { libc::_exit(code) }
}

/// Default dispositions for all signals, then none blocked: also glibc's own two, so by system call.
fn reset_signals() -> nix::Result<()> {
    let size = size_of::<u64>();
    let default_action = [0u64; 4]; // handler SIG_DFL, flags, restorer, mask
    let no_action = ptr::null_mut::<u64>();
    for signal in 1..=64 {
        // SAFETY: the kernel reads a sigaction of 32 bytes and, told so, writes none back. A default disposition runs
        // no code. SIGKILL and SIGSTOP are refused and stay as they are.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default_action.as_ptr(), no_action, size) };
    }
    let empty = 0u64;
    // SAFETY: the kernel reads a mask of 8 bytes and writes none back.
    let result = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &empty, no_action, size) };
    Errno::result(result).map(drop)
}

/// Marks all descriptors from `first` on to be closed at exec.
fn close_at_exec_from(first: libc::c_uint) -> nix::Result<()> {
    // SAFETY: close_range with this flag takes numbers only, and closes nothing now.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Errno::result(result).map(drop)
}

/// Starts a program under ptrace. It stands at its exec stop: mapped, with its stack made, and not an instruction of
/// it or of its dynamic loader executed. Options set: PTRACE_O_EXITKILL and PTRACE_O_TRACEEXEC.
///
/// It leads its own session, has default signal dispositions and an empty mask, no address randomization, no core
/// dumps, a stack limit of [`STACK_LIMIT`], no huge pages, only the descriptors given, and dies with the calling thread.
pub fn launch(spec: &LaunchSpec) -> Result<Stopped, LaunchError> {
    let mut plan = Plan::new(spec)?;
    let (answer, report) = unistd::pipe2(OFlag::O_CLOEXEC).map_err(LaunchError::NoProcess)?;
    plan.report = Some(report.as_raw_fd());
    plan.traced = true;
    // SAFETY: the child does only what is async-signal-safe, with what was allocated before, until exec or _exit.
    let child = match unsafe { unistd::fork() } {
        Ok(unistd::ForkResult::Child) => plan.carry_out_in_child(),
        Ok(unistd::ForkResult::Parent { child }) => child,
        Err(errno) => return Err(LaunchError::NoProcess(errno)),
    };
    drop(report);
    match to_exec_stop(Running::traced(child)) {
        Err(LaunchError::DiedEarly(how)) => Err(read_failure(answer).map_or(LaunchError::DiedEarly(how), Into::into)),
        Err(error) => {
            let child = Running::traced(child);
            let _ = child.kill().and_then(|()| child.reap().map(drop)); // the first error is the one to tell
            Err(error)
        }
        stopped => stopped,
    }
}

/// From the new process's first stop, which it makes itself, to the exec.
fn to_exec_stop(child: Running) -> Result<Stopped, LaunchError> {
    let mut running = child;
    let mut optioned = false;
    loop {
        let mut stopped = match running.wait()? {
            Event::Stopped(stopped) => stopped,
            Event::Signaled { signal, .. } => return Err(LaunchError::DiedEarly(format!("killed by {signal}"))),
            Event::Exited { code, .. } => return Err(LaunchError::DiedEarly(format!("exited with {code}"))),
            Event::Dying(dying) => {
                running = dying;
                continue;
            }
        };
        let pass_on = match stopped.reason {
            Reason::Exec => return Ok(stopped),
            Reason::Signal(signal) if signal.number() != libc::SIGSTOP => Some(signal),
            _ => None,
        };
        if !optioned {
            stopped.set_options(Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACEEXEC)?;
            optioned = true;
        }
        running = stopped.resume(pass_on)?;
    }
}

fn read_failure(answer: OwnedFd) -> Option<Failure> {
    let mut bytes = [0; 5];
    File::from(answer).read_exact(&mut bytes).ok()?;
    Failure::from_bytes(bytes)
}

/// Makes the calling process the program, as [`launch`] would make a new one, but untraced: for a replay without
/// supervisor. Returns only if it fails; the process may then already be changed in part. A process that leads its
/// group (a job of a shell) stays in its session.
pub fn launch_untraced(spec: &LaunchSpec) -> Result<Infallible, LaunchError> {
    let mut plan = Plan::new(spec)?;
    plan.parent = unistd::getppid();
    plan.in_place = true;
    Err(plan.carry_out().into())
}

// ------------------------------------------------------------------------------------------------ auxiliary vector

const AT_NULL: u64 = 0;
const AT_IGNORE: u64 = 1;
const AT_RANDOM: u64 = 25;
const AT_SYSINFO_EHDR: u64 = 33;

/// More entries than any stack of 8 MiB holds.
const MAX_WORDS: u64 = STACK_LIMIT / 8;

/// Makes a program that stands at its exec stop independent of chance and of the vDSO: the 16 random bytes that the
/// kernel gives (stack protector, pointer guard, seeds of hash tables) become `random`, and the entry that shows libc
/// the vDSO is ignored, so that the clock is read by system calls.
///
/// NOTE [Layout]. Without a vDSO the loader allocates less, so later mappings can lie elsewhere (two pages, seen with
/// glibc 2.36) than in the same program launched and not fixed, or launched by [`launch_untraced`].
pub fn fix_auxv(stopped: &mut Stopped, random: [u8; 16]) -> Result<(), LaunchError> {
    let memory = ProcessMemory::open(stopped.pid)?;
    let mut at = find_auxv(&memory, stopped.regs()?.rsp)?;
    let mut random_at = None;
    loop {
        match memory.read_u64(at)? {
            AT_NULL => break,
            AT_RANDOM => random_at = Some(memory.read_u64(at + 8)?),
            AT_SYSINFO_EHDR => memory.write_u64(at, AT_IGNORE)?,
            _ => {}
        }
        at += 16;
    }
    let random_at = random_at.ok_or(LaunchError::Stack("no AT_RANDOM"))?;
    Ok(memory.write(random_at, &random)?)
}

/// The auxiliary vector lies behind the environment, which lies behind the arguments, which lie behind their number,
/// where the stack pointer is.
fn find_auxv(memory: &ProcessMemory, rsp: u64) -> Result<u64, LaunchError> {
    let argc = memory.read_u64(rsp)?;
    if argc >= MAX_WORDS {
        return Err(LaunchError::Stack("no number of arguments"));
    }
    let envp = rsp + 8 + 8 * argc + 8;
    for i in 0..MAX_WORDS {
        if memory.read_u64(envp + 8 * i)? == 0 {
            return Ok(envp + 8 * i + 8);
        }
    }
    Err(LaunchError::Stack("no end of the environment"))
}

// ----------------------------------------------------------------------------------------------------------- probes

/// Really traces a process, to see whether that is allowed here. The text says what was refused.
pub fn probe_ptrace() -> Result<(), String> {
    let child =
        fork_probe(|| match ptrace::traceme().and_then(|()| nix::sys::signal::raise(nix::sys::signal::SIGSTOP)) {
            Ok(()) => 0,
            Err(errno) => errno as i32,
        })?;
    match child.wait().map_err(|e| e.to_string())? {
        Event::Stopped(mut stopped) => {
            let seen = use_as_tracee(&mut stopped);
            let end = stopped.kill().and_then(Running::reap).map_err(|e| e.to_string());
            seen.and(end.map(drop))
        }
        Event::Exited { code, .. } => {
            Err(format!("ptrace(PTRACE_TRACEME) is refused: {}", Errno::from_raw(code).desc()))
        }
        other => Err(format!("a process to be traced ended with {other:?}")),
    }
}

fn use_as_tracee(stopped: &mut Stopped) -> Result<(), String> {
    let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACEEXEC;
    stopped.set_options(options).map_err(|e| e.to_string())?;
    let regs = stopped.regs().map_err(|e| e.to_string())?;
    let memory = ProcessMemory::open(stopped.pid).map_err(|e| e.to_string())?;
    memory.read_u64(regs.rsp).map(drop).map_err(|e| e.to_string())
}

/// Switches Syscall User Dispatch on in a child, to see whether kernel and container allow it.
pub fn probe_syscall_user_dispatch() -> Result<(), String> {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    static ALLOW: u8 = 0;
    let set = |on: libc::c_ulong, selector: *const u8| {
        let zero: libc::c_ulong = 0;
        // SAFETY: switched on, the kernel reads the selector at each system call: a byte that outlives the child's
        // single switch-off, and always allows.
        unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, on, zero, zero, selector) }
    };
    let child = fork_probe(|| {
        let selector = ptr::from_ref(&ALLOW);
        let result = Errno::result(set(1, selector)).and_then(|_| Errno::result(set(0, ptr::null())));
        result.map_or_else(|errno| errno as i32, |_| 0)
    })?;
    match child.wait().map_err(|e| e.to_string())? {
        Event::Exited { code: 0, .. } => Ok(()),
        Event::Exited { code, .. } => {
            Err(format!("prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused: {}", Errno::from_raw(code).desc()))
        }
        other => Err(format!("a process with Syscall User Dispatch ended with {other:?}")),
    }
}

/// Runs `probe`, which must be async-signal-safe, in a child that dies with this thread and exits with its result.
fn fork_probe(probe: impl Fn() -> i32) -> Result<Running, String> {
    // SAFETY: the child does only what is async-signal-safe, and ends with _exit.
    match unsafe { unistd::fork() } {
        Ok(unistd::ForkResult::Child) => {
            let _ = prctl::set_pdeathsig(nix::sys::signal::SIGKILL); // the probe is short-lived all the same
            exit_now(probe())
        }
        Ok(unistd::ForkResult::Parent { child }) => Ok(Running::traced(child)),
        Err(errno) => Err(format!("cannot create a process: {}", errno.desc())),
    }
}

/// What the tests of this directory share.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use std::fs;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A fresh directory, removed when dropped.
    pub struct TempDir(pub PathBuf);

    impl TempDir {
        pub fn new() -> TempDir {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("vsrun-tracee-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let dir = std::env::temp_dir().join(name);
            fs::create_dir(&dir).unwrap();
            TempDir(dir.canonicalize().unwrap())
        }

        /// Compiles a C program.
        pub fn compile(&self, source: &str, flags: &[&str]) -> PathBuf {
            let input = self.0.join("program.c");
            let output = self.0.join("program");
            fs::write(&input, source).unwrap();
            let done = Command::new("gcc").arg(&input).arg("-o").arg(&output).args(flags).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            output
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A launch with nothing special about it.
    pub fn plain(exe: PathBuf) -> LaunchSpec {
        let argv = vec![OsString::from("program")];
        let (cwd, cpu) = (PathBuf::from("/"), None);
        LaunchSpec { exe, argv, envp: Vec::new(), cwd, stdio: [0, 1, 2], inherit: Vec::new(), cpu }
    }

    /// Kills that process when the test ends, also if it fails. A test ends by waiting for it, so that the id cannot
    /// be another's by then: the test takes the killer apart.
    pub struct Killer(Option<Pid>);

    impl Killer {
        pub fn of(stopped: &Stopped) -> Killer {
            Killer(Some(stopped.pid()))
        }

        pub fn disarm(mut self) {
            self.0 = None;
        }
    }

    impl Drop for Killer {
        fn drop(&mut self) {
            if let Some(pid) = self.0 {
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL);
                let _ = Running::traced(pid).reap();
            }
        }
    }

    pub fn stopped(event: Event) -> Stopped {
        match event {
            Event::Stopped(stopped) => stopped,
            other => panic!("not stopped: {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;
    use std::fs;
    use std::os::fd::IntoRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, Output};
    use std::time::{Duration, Instant};

    fn signal(number: i32) -> Signal {
        Signal::from_number(number).unwrap()
    }

    fn exit_code(event: Event) -> i32 {
        match event {
            Event::Exited { code, .. } => code,
            other => panic!("not exited: {other:?}"),
        }
    }

    /// Launches a C program and gives it to `drive`, which must see its end.
    fn with_program<T>(source: &str, drive: impl FnOnce(Stopped) -> T) -> T {
        let dir = TempDir::new();
        let stopped = launch(&plain(dir.compile(source, &["-O1", "-pthread"]))).unwrap();
        let killer = Killer::of(&stopped);
        let result = drive(stopped);
        killer.disarm();
        result
    }

    /// Runs an ignored test of this file alone in a process of its own.
    fn in_own_process(test: &str, variables: &[(&str, &Path)]) -> Output {
        let path = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &path, "--ignored", "--nocapture"]).envs(variables.iter().copied());
        command.output().unwrap()
    }

    /// What [`in_own_process`] was given; None if an inner test is run by hand.
    fn variable(name: &str) -> Option<PathBuf> {
        std::env::var_os(name).map(PathBuf::from)
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal(11).to_string(), "SIGSEGV");
        assert_eq!(signal(32).to_string(), "signal 32");
        assert_eq!(signal(36).to_string(), "SIGRTMIN+2");
        assert_eq!((Signal::from_number(0), Signal::from_number(65)), (None, None));
        assert_eq!(Signal::from(nix::sys::signal::SIGUSR1).number(), 10);
    }

    #[test]
    fn failures_survive_the_pipe() {
        for (number, step) in LaunchStep::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, number);
            let back = Failure::from_bytes(Failure { step, errno: Errno::EPERM }.to_bytes()).unwrap();
            assert_eq!((back.step, back.errno), (step, Errno::EPERM));
        }
        assert!(Failure::from_bytes([LaunchStep::ALL.len() as u8, 1, 0, 0, 0]).is_none());
    }

    #[test]
    fn launch_stops_before_the_loader_runs() {
        with_program("int main(void){return 42;}", |stopped| {
            assert_eq!(stopped.reason(), Reason::Exec);
            let maps = fs::read_to_string(format!("/proc/{}/maps", stopped.pid())).unwrap();
            assert!(maps.contains("/program") && !maps.contains("libc.so"), "{maps}");
            assert_eq!(stopped.event_message().unwrap(), stopped.pid().as_raw() as u64);
            assert_eq!(exit_code(stopped.resume(None).unwrap().wait().unwrap()), 42);
        });
    }

    /// Prints what a launch decides, one `name value` per line; the descriptors given at 10 and 11 are read.
    const REPORTER: &str = r#"
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        #include <sched.h>
        #include <dirent.h>
        #include <sys/personality.h>
        #include <sys/prctl.h>
        #include <sys/resource.h>
        #include <sys/auxv.h>
        #include <sys/mman.h>
        extern char **environ;
        int main(int argc, char **argv) {
            for (int i = 0; i < argc; i++) printf("arg %s\n", argv[i]);
            for (char **e = environ; *e; e++) printf("env %s\n", *e);
            printf("cwd %s\n", getcwd(0, 0));
            printf("leader %d\n", getsid(0) == getpid());
            printf("personality %x\n", personality(0xffffffff));
            int death; prctl(PR_GET_PDEATHSIG, &death);
            printf("death %d\n", death);
            printf("thp %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
            struct rlimit r;
            getrlimit(RLIMIT_CORE, &r); printf("core %lu\n", (long)r.rlim_cur);
            getrlimit(RLIMIT_STACK, &r); printf("stack %lu\n", (long)r.rlim_cur);
            cpu_set_t cpus; sched_getaffinity(0, sizeof cpus, &cpus);
            printf("cpus %d:", CPU_COUNT(&cpus));
            for (int i = 0; i < CPU_SETSIZE; i++) if (CPU_ISSET(i, &cpus)) printf(" %d", i);
            printf("\n");
            char line[256]; FILE *status = fopen("/proc/self/status", "r");
            while (fgets(line, sizeof line, status))
                if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6)) printf("%s", line);
            fclose(status);
            DIR *d = opendir("/proc/self/fd");
            for (struct dirent *e; (e = readdir(d)); )
                if (*e->d_name != '.' && atoi(e->d_name) != dirfd(d)) printf("fd %s\n", e->d_name);
            closedir(d);
            for (int fd = 10; fd < 12; fd++) {
                char text[16] = ""; if (pread(fd, text, 15, 0) >= 0) printf("read %d %s\n", fd, text);
            }
            void *map = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            printf("addresses %p %p %p %p %p\n", main, &r, malloc(10), map, printf);
            printf("random ");
            for (int i = 0; i < 16; i++) printf("%02x", ((unsigned char *)getauxval(AT_RANDOM))[i]);
            printf("\nvdso %lx\n", getauxval(AT_SYSINFO_EHDR));
            return 0;
        }"#;

    /// The reporter as `launch` starts it, with two files given crosswise, and its lines.
    fn reporter(dir: &TempDir) -> (LaunchSpec, File) {
        let exe = dir.0.join("program");
        if !exe.exists() {
            dir.compile(REPORTER, &[]);
        }
        let open = |name: &str| {
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(dir.0.join(name)).unwrap()
        };
        for name in ["ten", "eleven"] {
            fs::write(dir.0.join(name), name).unwrap();
        }
        let (ten, eleven, null) = (open("ten").into_raw_fd(), open("eleven").into_raw_fd(), open("null").into_raw_fd());
        let output = dir.0.join("output");
        let _ = fs::remove_file(&output);
        let out = open("output");
        let spec = LaunchSpec {
            exe,
            argv: vec!["name".into(), "two words".into(), "".into()],
            envp: vec!["B=1".into(), "A=2".into()],
            cwd: dir.0.clone(),
            stdio: [null, out.as_raw_fd(), 2],
            inherit: vec![(ten, 10), (eleven, 11)],
            cpu: Some(allowed_cpu()),
        };
        (spec, out)
    }

    /// The last CPU that this process may use.
    fn allowed_cpu() -> usize {
        let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
        (0..CpuSet::count()).rfind(|cpu| allowed.is_set(*cpu).unwrap()).unwrap()
    }

    fn launch_reporter(dir: &TempDir, random: Option<[u8; 16]>) -> Vec<String> {
        let (spec, _out) = reporter(dir);
        let mut stopped = launch(&spec).unwrap();
        let killer = Killer::of(&stopped);
        if let Some(random) = random {
            fix_auxv(&mut stopped, random).unwrap();
        }
        assert_eq!(exit_code(stopped.resume(None).unwrap().wait().unwrap()), 0);
        killer.disarm();
        lines(dir)
    }

    fn lines(dir: &TempDir) -> Vec<String> {
        fs::read_to_string(dir.0.join("output")).unwrap().lines().map(String::from).collect()
    }

    fn line<'a>(lines: &'a [String], name: &str) -> &'a str {
        lines.iter().find(|l| l.starts_with(name)).unwrap()
    }

    #[test]
    fn launch_decides_the_surroundings() {
        let dir = TempDir::new();
        let lines = launch_reporter(&dir, None);
        let expected = [
            "arg name",
            "arg two words",
            "arg ",
            "env B=1",
            "env A=2",
            "leader 1",
            "personality 40000",
            "death 9",
            "thp 1",
            "core 0",
            "stack 8388608",
            "SigBlk:\t0000000000000000",
            "SigIgn:\t0000000000000000",
            "read 10 ten",
            "read 11 eleven",
        ];
        for wanted in expected {
            assert!(lines.iter().any(|l| l == wanted), "{wanted} in {lines:#?}");
        }
        assert_eq!(line(&lines, "cwd"), format!("cwd {}", dir.0.display()));
        assert_eq!(line(&lines, "cpus"), format!("cpus 1: {}", allowed_cpu()));
        let fds: Vec<_> = lines.iter().filter(|l| l.starts_with("fd")).collect();
        assert_eq!(fds, ["fd 0", "fd 1", "fd 2", "fd 10", "fd 11"]);
    }

    #[test]
    fn descriptors_can_change_places() {
        let dir = TempDir::new();
        let (mut spec, _out) = reporter(&dir);
        let (ten, eleven) = (spec.inherit[0].0, spec.inherit[1].0);
        spec.inherit = vec![(ten, eleven), (eleven, ten), (eleven, 600)];
        let stopped = launch(&spec).unwrap();
        let killer = Killer::of(&stopped);
        let target = |fd| fs::read_link(format!("/proc/{}/fd/{fd}", stopped.pid())).unwrap();
        assert!(target(ten).ends_with("eleven") && target(eleven).ends_with("ten") && target(600).ends_with("eleven"));
        stopped.kill().unwrap().reap().map(drop).unwrap();
        killer.disarm();
    }

    #[test]
    fn auxv_is_fixed_and_addresses_repeat() {
        let dir = TempDir::new();
        let random = *b"0123456789abcdef";
        let first = launch_reporter(&dir, Some(random));
        assert_eq!(line(&first, "random"), "random 30313233343536373839616263646566");
        assert_eq!(line(&first, "vdso"), "vdso 0");
        assert_eq!(first, launch_reporter(&dir, Some(random)));
        let unfixed = launch_reporter(&dir, None);
        assert_ne!(line(&unfixed, "vdso"), "vdso 0");
        // NOTE [Layout]: only what ld.so has not allocated for lies where it lay.
        let fixed_part = |lines: &[String]| line(lines, "addresses").split(' ').take(4).collect::<Vec<_>>().join(" ");
        assert_eq!(fixed_part(&unfixed), fixed_part(&first));
    }

    #[test]
    fn untraced_launch_gives_the_same_program() {
        let dir = TempDir::new();
        let traced = launch_reporter(&dir, None);
        let run = in_own_process("inner_untraced", &[("VSRUN_TEST_DIR", &dir.0)]);
        assert!(run.status.success(), "{run:?}");
        let chosen = |lines: &[String]| -> Vec<String> {
            lines.iter().filter(|l| !l.starts_with("random") && !l.starts_with("leader")).cloned().collect()
        };
        assert_eq!(chosen(&traced), chosen(&lines(&dir)));
    }

    #[test]
    #[ignore = "becomes another program; run by untraced_launch_gives_the_same_program"]
    fn inner_untraced() {
        let Some(dir) = variable("VSRUN_TEST_DIR") else { return };
        let dir = std::mem::ManuallyDrop::new(TempDir(dir));
        let (spec, _out) = reporter(&dir);
        panic!("{}", launch_untraced(&spec).unwrap_err());
    }

    fn failed_step(spec: &LaunchSpec) -> (LaunchStep, Errno) {
        match launch(spec) {
            Err(LaunchError::Step { step, errno }) => (step, errno),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failed_launch_says_what_failed() {
        let dir = TempDir::new();
        let good = plain(dir.compile("int main(void){return 0;}", &[]));
        let missing = LaunchSpec { exe: dir.0.join("missing"), ..good.clone() };
        assert_eq!(failed_step(&missing), (LaunchStep::Exec, Errno::ENOENT));
        assert_eq!(launch(&missing).unwrap_err().to_string(), "cannot execute it (execve): No such file or directory");
        let directory = LaunchSpec { exe: dir.0.clone(), ..good.clone() };
        assert_eq!(failed_step(&directory), (LaunchStep::Exec, Errno::EACCES));
        let nowhere = LaunchSpec { cwd: dir.0.join("missing"), ..good.clone() };
        assert_eq!(failed_step(&nowhere), (LaunchStep::Directory, Errno::ENOENT));
        let closed = LaunchSpec { inherit: vec![(987_654, 7)], ..good.clone() };
        assert_eq!(failed_step(&closed), (LaunchStep::Descriptors, Errno::EBADF));
        let nul = LaunchSpec { argv: vec!["a\0b".into()], ..good.clone() };
        assert_eq!(launch(&nul).unwrap_err().to_string(), r#"argument "a\0b" contains a NUL byte"#);
        let many = LaunchSpec { cpu: Some(1_000_000), ..good.clone() };
        assert_eq!(failed_step(&many), (LaunchStep::Cpu, Errno::EINVAL));
        let absent = LaunchSpec { cpu: Some(1000), ..good };
        assert_eq!(failed_step(&absent), (LaunchStep::Cpu, Errno::EINVAL));
    }

    #[test]
    fn signals_are_passed_on_or_kept() {
        let source = "#include <signal.h>\nint main(void){raise(SIGRTMIN+1); return 3;}";
        let at_signal = |stopped: Stopped| {
            let at = super::testing::stopped(stopped.resume(None).unwrap().wait().unwrap());
            assert_eq!(at.reason(), Reason::Signal(signal(35)));
            assert_eq!(at.siginfo().unwrap().si_signo, 35);
            at
        };
        with_program(source, |stopped| {
            assert_eq!(exit_code(at_signal(stopped).resume(None).unwrap().wait().unwrap()), 3);
        });
        with_program(source, |stopped| {
            let at = at_signal(stopped);
            match at.resume(Some(signal(35))).unwrap().wait().unwrap() {
                Event::Signaled { signal: by, core: false, .. } => assert_eq!(by, signal(35)),
                other => panic!("{other:?}"),
            }
        });
    }

    #[test]
    fn registers_are_read_and_set() {
        let source = r#"int main(void){int r = 5; __asm__ volatile("int3\n nop" : "+a"(r)); return r;}"#;
        with_program(source, |at_exec| {
            let mut at = stopped(at_exec.resume(None).unwrap().wait().unwrap());
            assert_eq!(at.reason(), Reason::Signal(signal(libc::SIGTRAP)));
            let mut regs = at.regs().unwrap();
            assert_eq!(regs.rax, 5);
            regs.rax = 77;
            at.set_regs(&regs).unwrap();
            let at = stopped(at.step(None).unwrap().wait().unwrap());
            assert_eq!(at.regs().unwrap().rip, regs.rip + 1);
            assert_eq!(exit_code(at.resume(None).unwrap().wait().unwrap()), 77);
        });
    }

    #[test]
    fn fault_addresses_are_told() {
        let at_fault = |body: &str| {
            with_program(&format!("#include <signal.h>\nint main(void){{{body} return 0;}}"), |at_exec| {
                let at = stopped(at_exec.resume(None).unwrap().wait().unwrap());
                let address = fault_address(&at.siginfo().unwrap());
                let rip = at.regs().unwrap().rip;
                at.kill().unwrap().reap().map(drop).unwrap();
                (address, rip)
            })
        };
        assert_eq!(at_fault("*(volatile char *)0x123 = 1;").0, Some(0x123));
        assert_eq!(at_fault("raise(SIGSEGV);").0, None);
        // Not a canonical address: the processor does not tell which.
        assert_eq!(at_fault("*(volatile char *)0x8000000000000000 = 1;").0, None);
        let (address, rip) = at_fault("__builtin_trap();");
        assert_eq!(address, Some(rip));
    }

    #[test]
    fn system_calls_stop_twice() {
        with_program("#include <unistd.h>\nint main(void){_exit(0);}", |mut at| {
            at.set_options(Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACESYSGOOD).unwrap();
            let mut numbers = Vec::new();
            let code = loop {
                match at.resume_to_syscall(None).unwrap().wait().unwrap() {
                    Event::Stopped(stopped) => at = stopped,
                    end => break exit_code(end),
                }
                assert_eq!(at.reason(), Reason::Syscall);
                numbers.push(at.regs().unwrap().orig_rax);
            };
            assert_eq!(code, 0);
            assert_eq!(numbers.last(), Some(&(libc::SYS_exit_group as u64)));
            // The first is the return from execve, the last does not return.
            assert_eq!(numbers[0], libc::SYS_execve as u64);
            assert!(numbers[1..numbers.len() - 1].chunks(2).all(|pair| pair[0] == pair[1]), "{numbers:?}");
        });
    }

    #[test]
    fn job_control_stops_are_told_apart() {
        with_program("#include <signal.h>\nint main(void){raise(SIGSTOP); return 4;}", |at_exec| {
            let stop = signal(libc::SIGSTOP);
            let at = stopped(at_exec.resume(None).unwrap().wait().unwrap());
            assert_eq!(at.reason(), Reason::Signal(stop));
            let at = stopped(at.resume(Some(stop)).unwrap().wait().unwrap());
            assert_eq!(at.reason(), Reason::GroupStop(stop));
            assert_eq!(exit_code(at.resume(None).unwrap().wait().unwrap()), 4);
        });
    }

    #[test]
    fn a_running_tracee_is_interrupted() {
        with_program("int main(void){for(;;);}", |at_exec| {
            let running = at_exec.resume(None).unwrap();
            running.interrupt().unwrap();
            let at = stopped(running.wait().unwrap());
            assert_eq!(at.reason(), Reason::Signal(signal(libc::SIGSTOP)));
            let end = at.kill().unwrap().reap().unwrap();
            assert!(matches!(end, Event::Signaled { signal: Signal(9), .. }), "{end:?}");
        });
    }

    #[test]
    fn a_detached_tracee_goes_its_way() {
        with_program("int main(void){return 7;}", |at_exec| {
            let pid = at_exec.pid();
            at_exec.detach(None).unwrap();
            assert_eq!(exit_code(Running::traced(pid).wait().unwrap()), 7);
            assert!(Running::traced(pid).wait().unwrap_err().is_death());
        });
    }

    #[test]
    fn death_is_data() {
        with_program("int main(void){return 0;}", |mut at| {
            nix::sys::signal::kill(at.pid(), nix::sys::signal::SIGKILL).unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            while at.regs().is_ok() {
                assert!(Instant::now() < deadline);
            }
            assert_eq!(at.regs().unwrap_err(), TraceError::Died { operation: "get registers", pid: at.pid() });
            assert!(at.set_options(Options::PTRACE_O_EXITKILL).unwrap_err().is_death());
            let end = at.resume(None).unwrap().wait().unwrap();
            assert!(matches!(end, Event::Signaled { signal: Signal(9), core: false, .. }), "{end:?}");
        });
    }

    #[test]
    fn an_invalid_signal_status_is_an_error() {
        let status = WaitStatus::from_raw(0xffff);
        let pid = Pid::from_raw(1);
        assert_eq!(Event::decode(pid, status).unwrap_err(), TraceError::Status { pid, status });
    }

    #[test]
    fn a_central_loop_sees_every_kind_of_event() {
        let dir = TempDir::new();
        let source = r#"
            #define _GNU_SOURCE
            #include <pthread.h>
            #include <stdlib.h>
            #include <unistd.h>
            #include <sys/wait.h>
            static void *thread(void *x) { return x; }
            int main(int argc, char **argv) {
                if (argc > 1) return 9;
                if (fork() == 0) abort();
                wait(0);
                if (vfork() == 0) _exit(2);
                wait(0);
                pthread_t t;
                pthread_create(&t, 0, thread, 0);
                pthread_join(t, 0);
                execl("/proc/self/exe", "again", "x", (char *)0);
            }"#;
        let exe = dir.compile(source, &["-pthread"]);
        let run = in_own_process("inner_central_loop", &[("VSRUN_TEST_EXE", &exe)]);
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
        let events: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("event ")).collect();
        for wanted in [
            "root Fork",
            "root Vfork",
            "root VforkDone",
            "root Clone",
            "root Exec",
            "other Exit",
            "root Exit",
            "other Signal SIGABRT",
            "other signaled SIGABRT",
            "other exited 2",
            "other exited 0",
            "root exited 9",
            "other Signal SIGSTOP",
        ] {
            assert!(events.contains(&wanted), "{wanted} in {events:#?}");
        }
        assert_eq!(events.last(), Some(&"root exited 9"));
    }

    #[test]
    #[ignore = "waits for any child; run by a_central_loop_sees_every_kind_of_event"]
    fn inner_central_loop() {
        let Some(exe) = variable("VSRUN_TEST_EXE") else { return };
        let mut root = launch(&plain(exe)).unwrap();
        let root_pid = root.pid();
        root.set_options(Options::all()).unwrap();
        let _ = root.resume(None).unwrap();
        println!();
        loop {
            match wait_any(true).unwrap() {
                Waited::Changed(pid, status) => {
                    let who = if pid == root_pid { "root" } else { "other" };
                    println!("event {who} {}", describe_and_resume(Event::decode(pid, status).unwrap()));
                }
                Waited::NoChildren => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(wait_any(false).unwrap(), Waited::NoChildren);
    }

    fn describe_and_resume(event: Event) -> String {
        let at = match event {
            Event::Stopped(at) => at,
            Event::Exited { code, .. } => return format!("exited {code}"),
            Event::Signaled { signal, .. } => return format!("signaled {signal}"),
            Event::Dying(_) => return "dying".to_string(),
        };
        let message = at.event_message().unwrap();
        let (text, pass_on) = match at.reason() {
            Reason::Signal(signal) => {
                (format!("Signal {signal}"), (signal.number() != libc::SIGSTOP).then_some(signal))
            }
            Reason::Fork(p) | Reason::Vfork(p) | Reason::Clone(p) => {
                assert_eq!(message, p.as_raw() as u64);
                (format!("{:?}", at.reason()).split('(').next().unwrap().to_string(), None)
            }
            other => (format!("{other:?}"), None),
        };
        let _ = at.resume(pass_on).unwrap();
        text
    }

    #[test]
    fn tracees_die_with_the_tracer() {
        let dir = TempDir::new();
        let exe = dir.compile("int main(void){for(;;);}", &[]);
        let run = in_own_process("inner_killed_tracer", &[("VSRUN_TEST_EXE", &exe)]);
        assert_eq!(run.status.signal(), Some(9), "{run:?}");
        let text = String::from_utf8(run.stdout).unwrap();
        let pid = text.lines().find_map(|l| l.strip_prefix("pid ")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let is_ours = || fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == exe);
        while is_ours() {
            assert!(Instant::now() < deadline, "process {pid} lives");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    #[ignore = "kills its process; run by tracees_die_with_the_tracer"]
    fn inner_killed_tracer() {
        let Some(exe) = variable("VSRUN_TEST_EXE") else { return };
        let stopped = launch(&plain(exe)).unwrap();
        println!("\npid {}", stopped.pid());
        let _running = stopped.resume(None).unwrap();
        nix::sys::signal::raise(nix::sys::signal::SIGKILL).unwrap();
    }

    #[test]
    fn errors_can_leave_the_thread() {
        fn sendable<T: Send + Sync + std::error::Error>() {}
        sendable::<TraceError>();
        sendable::<LaunchError>();
    }

    #[test]
    fn this_machine_can_be_probed() {
        assert_eq!(probe_ptrace(), Ok(()));
        assert_eq!(probe_syscall_user_dispatch(), Ok(()));
    }
}
