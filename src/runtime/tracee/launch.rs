//! The start of a program: everything about it is decided here, nothing is left to where vsrun happens to run.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fmt, ptr};

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sched::CpuSet;
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::ptrace::{self, Options};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::unistd::{self, Pid};

use super::state::{Event, Reason, Running, Stopped, TraceError};
use crate::runtime::memory::{MemoryError, ProcessMemory};

/// The soft limit of the main stack that every launched program gets, in bytes. The kernel derives the place of all
/// mappings from it.
pub const STACK_LIMIT: u64 = 8 << 20;

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
    /// All steps, in words.
    const ALL: [(LaunchStep, &str); 13] = [
        (LaunchStep::DeathSignal, "set the parent-death signal (prctl PR_SET_PDEATHSIG)"),
        (LaunchStep::Parent, "stay with the parent"),
        (LaunchStep::Signals, "reset the signals"),
        (LaunchStep::Session, "start a session (setsid)"),
        (LaunchStep::Personality, "switch address randomization off (personality ADDR_NO_RANDOMIZE)"),
        (LaunchStep::CoreLimit, "switch core dumps off (setrlimit RLIMIT_CORE)"),
        (LaunchStep::StackLimit, "set the stack limit to 8 MiB (setrlimit RLIMIT_STACK)"),
        (LaunchStep::HugePages, "switch huge pages off (prctl PR_SET_THP_DISABLE)"),
        (LaunchStep::Cpu, "bind to a CPU (sched_setaffinity)"),
        (LaunchStep::Directory, "change the working directory (chdir)"),
        (LaunchStep::Descriptors, "place the file descriptors"),
        (LaunchStep::TraceMe, "be traced (ptrace PTRACE_TRACEME)"),
        (LaunchStep::Exec, "execute it (execve)"),
    ];
}

impl fmt::Display for LaunchStep {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        LaunchStep::ALL.iter().filter(|(step, _)| step == self).try_for_each(|(_, text)| f.write_str(text))
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
            LaunchError::Step { step, errno } => {
                write!(f, "cannot {step}: {}", errno.desc())?;
                // docker's default profile forbids nothing else that is needed here.
                let in_container = *step == LaunchStep::Personality && *errno == Errno::EPERM;
                f.write_str(if in_container {
                    "; in a container allow it: --security-opt seccomp=unconfined"
                } else {
                    ""
                })
            }
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
        let (step, _) = *LaunchStep::ALL.get(usize::from(bytes[0]))?;
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
pub(super) fn exit_now(code: i32) -> ! {
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
        let pass_on = match stopped.reason() {
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

const AT_NULL: u64 = 0;
const AT_RANDOM: u64 = 25;

/// More entries than any stack of 8 MiB holds.
const MAX_WORDS: u64 = STACK_LIMIT / 8;

/// Makes a program that stands at its exec stop independent of chance: the 16 random bytes that the kernel gives (stack
/// protector, pointer guard, seeds of hash tables) become `random`.
///
/// NOTE "Layout". Nothing else is touched, so every mapping lies where it lies in the same program launched and not
/// fixed, or launched by [`launch_untraced`](super::launch_untraced). AT_SYSINFO_EHDR in particular stays: without a
/// vDSO the loader allocates less, and later mappings move (two pages, seen with glibc 2.36). The real clock is kept
/// from the program by the shim, which patches the vDSO's functions.
pub fn fix_auxv(stopped: &mut Stopped, random: [u8; 16]) -> Result<(), LaunchError> {
    let memory = ProcessMemory::open(stopped.pid())?;
    let mut at = find_auxv(&memory, stopped.regs()?.rsp)?;
    let mut random_at = None;
    loop {
        match memory.read_u64(at)? {
            AT_NULL => break,
            AT_RANDOM => random_at = Some(memory.read_u64(at + 8)?),
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

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
