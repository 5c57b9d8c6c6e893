//! Other processes of this world, as the kernel has them.

use vsrun_model::arena::ARENA_FD;

use super::arena;
use crate::sys::errno::{EACCES, ESRCH};
use crate::sys::{decimal, raw};

/// Ends a process of this world for the kernel. Where the number is another's by now (somebody outside has killed it, and it was waited for) nobody is
/// ended: what the descriptor stands for stays the same process, and it is looked at after it is held whether that has the arena open.
pub fn end_process(real: i32) {
    let held = raw!(libc::SYS_pidfd_open, real, 0);
    if held == ESRCH {
        return;
    }
    if is_of_this_world(real) {
        match held {
            // No descriptor is left. What was of this world a moment ago is that still, or a zombie: numbers go round the whole table first.
            ..0 => raw!(libc::SYS_kill, real, libc::SIGKILL),
            _ => raw!(libc::SYS_pidfd_send_signal, held, libc::SIGKILL, 0, 0),
        };
    }
    if held >= 0 {
        raw!(libc::SYS_close, held);
    }
}

/// That process has the arena open. Of one that the kernel lets nobody look at (it has changed its user) it is known at least that it is vsrun's child.
fn is_of_this_world(real: i32) -> bool {
    // Device and number of the file.
    let id = |path: &[u8]| {
        let mut stat = [0u64; 18];
        match raw!(libc::SYS_stat, path.as_ptr(), stat.as_mut_ptr()) {
            0 => Ok([stat[0], stat[1]]),
            error => Err(error),
        }
    };
    let own = id(&name_of(raw!(libc::SYS_getpid) as i32));
    match id(&name_of(real)) {
        Ok(found) => own == Ok(found),
        Err(EACCES) => arena().control.vsrun_pid != 0 && parent(real) == arena().control.vsrun_pid,
        Err(_) => false,
    }
}

/// What descriptor of the arena that process has.
fn name_of(real: i32) -> [u8; 64] {
    let mut name = [0; 64];
    let mut used = 0;
    for part in [b"/proc/".as_slice(), &decimal(real), b"/fd/", &decimal(ARENA_FD)] {
        name[used..used + part.len()].copy_from_slice(part);
        used += part.len();
    }
    name
}

/// The parent of a process; 0: there is none.
fn parent(pid: i32) -> i32 {
    let mut text = [0u8; 512];
    let n = read_of(pid, b"stat", &mut text);
    // Behind the name, which is in brackets, come the state and the number.
    let Some(at) = text[..n].iter().rposition(|&c| c == b')') else { return 0 };
    let digits = text[(at + 4).min(n)..n].iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0, |number, digit| 10 * number + i32::from(digit - b'0'))
}

/// A file of process `pid` in /proc; the number of bytes read.
pub fn read_of(pid: i32, name: &[u8], text: &mut [u8]) -> usize {
    let pid = decimal(pid);
    let mut path = [0u8; 64];
    let mut used = 0;
    for part in [b"/proc/".as_slice(), &pid, b"/", name] {
        path[used..used + part.len()].copy_from_slice(part);
        used += part.len();
    }
    let fd = raw!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY);
    if fd < 0 {
        return 0;
    }
    let n = raw!(libc::SYS_read, fd, text.as_mut_ptr(), text.len()).max(0) as usize;
    raw!(libc::SYS_close, fd);
    n
}
