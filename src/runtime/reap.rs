//! Processes of an execution let go, killed and collected.

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use super::session::PrivateDir;
use super::tracee::{Reason, Stopped};

/// A signal by which the kernel says that the program is at fault.
pub(super) fn is_fault(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGXCPU, SIGXFSZ};
    matches!(signal, SIGSEGV | SIGBUS | SIGFPE | SIGILL | SIGTRAP | SIGABRT | SIGXCPU | SIGXFSZ)
}

/// Lets a tracee go on; one that died meanwhile needs nothing.
pub(super) fn resume_quietly(stopped: Stopped) {
    let signal = match stopped.reason() {
        Reason::Signal(signal) if signal.number() != libc::SIGSTOP => Some(signal),
        _ => None,
    };
    drop(stopped.resume(signal));
}

/// Kills and collects one child; pids of processes that are collected already are ignored. The guard is spared.
pub(super) fn reap(pid: i32, dir: &PrivateDir) {
    if Some(pid) == dir.guard_pid() {
        return;
    }
    let pid = Pid::from_raw(pid);
    match waitpid(pid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
        Err(Errno::ECHILD) | Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return,
        _ => {}
    }
    let _ = kill(pid, Signal::SIGKILL);
    loop {
        match waitpid(pid, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Real pids of this thread's children.
pub(super) fn children() -> Vec<i32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
