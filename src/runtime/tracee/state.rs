//! The states of a tracee, and what is asked of it in them.

use std::marker::PhantomData;
use std::{fmt, ptr};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use super::numbers::is_ours;

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
    pub(super) fn new(operation: &'static str, pid: Pid, errno: Errno) -> TraceError {
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
    /// A signal handler ran meanwhile.
    Interrupted,
}

/// Waits for any child or tracee of the calling thread; the heart of a central loop.
pub fn wait_any(block: bool) -> Result<Waited, TraceError> {
    wait(Pid::from_raw(-1), if block { 0 } else { libc::WNOHANG })
}

/// The same for one child, which is not waited for if it has not changed its state.
pub fn wait_for(pid: Pid) -> Result<Waited, TraceError> {
    wait(pid, libc::WNOHANG)
}

fn wait(pid: Pid, flags: libc::c_int) -> Result<Waited, TraceError> {
    match wait_raw(pid, flags) {
        Ok(Some((pid, status))) => Ok(Waited::Changed(pid, status)),
        Ok(None) => Ok(Waited::NothingYet),
        Err(Errno::ECHILD) => Ok(Waited::NoChildren),
        Err(Errno::EINTR) => Ok(Waited::Interrupted),
        Err(errno) => Err(TraceError::new("wait", pid, errno)),
    }
}

pub(super) fn wait_raw(pid: Pid, flags: libc::c_int) -> nix::Result<Option<(Pid, WaitStatus)>> {
    let mut status = 0;
    // Other threads wait for their own children.
    let flags = flags | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: `status` is a valid place for an int, and the only memory that waitpid writes.
    let changed = Errno::result(unsafe { libc::waitpid(pid.as_raw(), &mut status, flags) })?;
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
    let signal = Signal::from_number(libc::WSTOPSIG(status.0)).ok_or(TraceError::Status { pid, status })?;
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

    /// What the kernel says about the signal it stopped with. There is none in a group stop: `Failed` with EINVAL.
    pub fn siginfo(&self) -> Result<libc::siginfo_t, TraceError> {
        ptrace::getsiginfo(self.pid).map_err(|errno| TraceError::new("get siginfo", self.pid, errno))
    }

    /// Debug register `n`, 0 to 7.
    pub fn debug_register(&self, n: usize) -> Result<u64, TraceError> {
        let word = ptrace::read_user(self.pid, debug_register_at(n));
        word.map(|word| word as u64).map_err(|errno| TraceError::new("read a debug register", self.pid, errno))
    }

    /// Sets it; the kernel refuses what is no address of the program's.
    pub fn set_debug_register(&self, n: usize, value: u64) -> Result<(), TraceError> {
        let result = ptrace::write_user(self.pid, debug_register_at(n), value as libc::c_long);
        result.map_err(|errno| TraceError::new("set a debug register", self.pid, errno))
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

    /// Makes it stop soon, with [`Reason::Signal`] SIGSTOP, which must then not be passed on. That it is nobody's who is ours is no error, see
    /// `numbers`.
    pub fn interrupt(&self) -> Result<(), TraceError> {
        if !is_ours(self.pid) {
            return Ok(());
        }
        // SAFETY: tkill takes two numbers and touches no memory of this process.
        match Errno::result(unsafe { libc::syscall(libc::SYS_tkill, self.pid.as_raw(), libc::SIGSTOP) }) {
            Ok(_) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(TraceError::new("interrupt", self.pid, errno)),
        }
    }

    /// Sends SIGKILL to the process. That it is dead already is no error, nor that it was waited for: then nobody gets the signal, see
    /// `numbers`.
    pub fn kill(&self) -> Result<(), TraceError> {
        if !is_ours(self.pid) {
            return Ok(());
        }
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

/// Where the kernel's `struct user` has debug register `n`.
fn debug_register_at(n: usize) -> ptrace::AddressType {
    (std::mem::offset_of!(libc::user, u_debugreg) + 8 * n) as ptrace::AddressType
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

/// The kernel's id of the process that sent a signal, as that says: 0 if it is none that the receiver can see. `None`: the
/// kernel sent it of its own accord.
pub fn sender(info: &libc::siginfo_t) -> Option<i32> {
    // SAFETY: for codes of signals that processes send, and only for these, the union holds the sender's id.
    (info.si_code <= 0).then(|| unsafe { info.si_pid() })
}

/// A request that takes a number and no address.
fn plain_request(request: libc::c_uint, pid: Pid, number: i32) -> nix::Result<()> {
    // SAFETY: the requests given by this file (CONT, SINGLESTEP, SYSCALL, DETACH) ignore the address and read the data
    // as a signal number, so the kernel touches no memory of this process.
    let result =
        unsafe { libc::ptrace(request, pid.as_raw(), ptr::null_mut::<libc::c_void>(), libc::c_long::from(number)) };
    Errno::result(result).map(drop)
}
