//! Probes: what this machine, or the container on it, allows is tried, not guessed.

use std::ptr;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::ptrace::{self, Options};
use nix::unistd;

use super::launch::exit_now;
use super::state::{Event, Running, Stopped};
use crate::runtime::memory::ProcessMemory;

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
    let memory = ProcessMemory::open(stopped.pid()).map_err(|e| e.to_string())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_probed() {
        assert_eq!(probe_ptrace(), Ok(()));
        assert_eq!(probe_syscall_user_dispatch(), Ok(()));
    }
}
