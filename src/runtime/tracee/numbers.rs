//! Whose the number of a process is.
//!
//! NOTE \[Numbers\] A number is given to another process once somebody has waited for the end of the one that had it. The children and tracees of a
//! thread here are waited for by that thread alone (`__WNOTHREAD`), so one that it has not waited for yet keeps its number, dead or alive, as long as the
//! thread does something else: whom it finds by the number is whom a signal gets. What else a number may be of (it was waited for already, or stands in
//! the arena, where the program may write) is not found so, and gets nothing.

use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitid, Id, WaitPidFlag};
use nix::unistd::Pid;

/// True if that is a child or a tracee of the calling thread that it has not waited for yet.
pub fn is_ours(pid: Pid) -> bool {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let whose = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    pid.as_raw() > 0 && waitid(Id::Pid(pid), look | whose).is_ok()
}

/// Sends a signal to a child or a tracee of the calling thread. False: it is none, or none any more.
pub fn send(pid: Pid, signal: Signal) -> bool {
    is_ours(pid) && kill(pid, signal).is_ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::*;

    #[test]
    fn only_what_is_not_waited_for_gets_a_signal() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = Pid::from_raw(child.id() as i32);
        // That of another thread is not ours, nor is a process of somebody else, nor what is no process.
        assert!(is_ours(pid) && !thread::spawn(move || is_ours(pid)).join().expect("no panic"));
        assert!(!is_ours(Pid::from_raw(1)) && !is_ours(Pid::this()) && !is_ours(Pid::from_raw(0)));
        assert!(!send(Pid::from_raw(-1), Signal::SIGCONT) && !send(Pid::from_raw(1), Signal::SIGCONT));
        assert!(send(pid, Signal::SIGKILL));
        // A zombie keeps its number.
        while !std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there").contains(") Z ") {}
        assert!(is_ours(pid));
        child.wait().expect("its end");
        assert!(!is_ours(pid) && !send(pid, Signal::SIGKILL));
    }
}
