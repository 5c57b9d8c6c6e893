//! A thread of a process that is not vsrun's, stopped for as long as it takes to read its registers.
//!
//! NOTE [What a stop does]. The stop is PTRACE_INTERRUPT's: no signal is sent. But the kernel ends the system call in which the
//! thread waits, and begins it again when the thread goes on. Some calls it does not begin again: they fail with EINTR, or return
//! with a part of what they were to write (signal(7), "Interruption of system calls and library functions by stop signals").
//! The program would see that, so the caller may only stop threads in calls of the first kind.
//!
//! NOTE [Who lets it go]. If this thread ends, whichever way, the kernel detaches from what it has seized and lets it run.

use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use super::state::{wait_raw, Event, Reason, Stopped, TraceError};

/// What was seen of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Glimpse<T> {
    /// Its registers.
    pub regs: libc::user_regs_struct,
    /// What was read while it stood still.
    pub read: T,
    /// From the request to stop until it was let go.
    pub stopped: Duration,
}

/// Stops thread `tid`, reads its registers and what `read` reads, and lets it go, with the signal that it was about to get, if
/// one was. `None`: it did not stop within `patience`, or it ended.
///
/// # Errors
/// It must not be traced, or is traced already.
pub fn glimpse<T: Send>(
    tid: i32,
    patience: Duration,
    read: impl FnOnce(&libc::user_regs_struct) -> T + Send,
) -> Result<Option<Glimpse<T>>, TraceError> {
    // In a thread of its own: see NOTE [Who lets it go].
    thread::scope(|scope| scope.spawn(|| look(Pid::from_raw(tid), patience, read)).join()).unwrap_or(Ok(None))
}

fn look<T>(
    tid: Pid,
    patience: Duration,
    read: impl FnOnce(&libc::user_regs_struct) -> T,
) -> Result<Option<Glimpse<T>>, TraceError> {
    let failed = |operation: &'static str| move |errno| TraceError::new(operation, tid, errno);
    ptrace::seize(tid, Options::empty()).map_err(failed("seize"))?;
    let since = Instant::now();
    ptrace::interrupt(tid).map_err(failed("interrupt"))?;
    let Some(stopped) = wait(tid, since, patience)? else { return Ok(None) };
    let seen = stopped.regs().map(|regs| (regs, read(&regs)));
    let signal = match stopped.reason() {
        Reason::Signal(signal) => Some(signal),
        _ => None,
    };
    stopped.detach(signal)?;
    let stopped = since.elapsed();
    let (regs, read) = seen?;
    Ok(Some(Glimpse { regs, read, stopped }))
}

fn wait(tid: Pid, since: Instant, patience: Duration) -> Result<Option<Stopped>, TraceError> {
    const SPIN: Duration = Duration::from_millis(2);
    loop {
        match wait_raw(tid, libc::WNOHANG) {
            Ok(Some((pid, status))) => match Event::decode(pid, status)? {
                Event::Stopped(stopped) => return Ok(Some(stopped)),
                _ => return Ok(None),
            },
            Ok(None) if since.elapsed() > patience => return Ok(None),
            Ok(None) if since.elapsed() > SPIN => thread::sleep(Duration::from_micros(100)),
            Ok(None) => thread::yield_now(),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(TraceError::new("wait", tid, errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    /// Waits in `pause`, which the kernel begins again; says what became of it when SIGUSR1 has come.
    const WAITS: &str = r#"
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static void on(int s) { (void)s; }
        int main(void) { signal(SIGUSR1, on); puts("ready"); fflush(stdout); pause(); puts("over"); return 7; }
    "#;

    #[test]
    fn it_goes_on_as_if_nothing_had_been() {
        let dir = TempDir::new();
        let mut child = Command::new(dir.compile("p", "c", WAITS, &[])).stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        thread::sleep(Duration::from_millis(50));
        let seen = glimpse(pid, Duration::from_secs(2), |regs| regs.orig_rax).unwrap().unwrap();
        assert_eq!((seen.read, seen.regs.orig_rax), (libc::SYS_pause as u64, libc::SYS_pause as u64));
        thread::sleep(Duration::from_millis(50));
        assert_eq!(child.try_wait().unwrap(), None, "the wait was over");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("TracerPid:\t0\n") && status.contains("State:\tS"), "{status}");
        nix::sys::signal::kill(Pid::from_raw(pid), nix::sys::signal::Signal::SIGUSR1).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "over");
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn who_is_not_there_is_dead() {
        assert!(glimpse(i32::MAX, Duration::ZERO, |_| ()).unwrap_err().is_death());
    }
}
