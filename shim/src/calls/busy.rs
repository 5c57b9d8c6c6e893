//! Files that are busy (ETXTBSY): executed, or open for writing, by a process that is over for the program and still there for the kernel.

use vsrun_model::{ProcState, Process, NONE};

use crate::gate::{end, local, process_of, world};
use crate::sys::errno::ETXTBSY;
use crate::sys::{decimal, raw};

/// A call that may find a file busy (ETXTBSY), which a process executes or has open for writing. A process that is over for the program may be
/// there for the kernel for a while.
pub fn patiently(call: impl Fn() -> i64) -> i64 {
    const TIMES: u32 = 5000;
    const MILLISECOND: [u64; 2] = [0, 1_000_000];
    let mut result = call();
    let mut left = TIMES;
    while result == ETXTBSY && left > 0 {
        let ends = is_any(|process| process.state != ProcState::LIVE);
        if !ends {
            // It may have come to its end just now.
            left = 1;
        }
        raw!(libc::SYS_nanosleep, MILLISECOND.as_ptr(), 0);
        result = call();
        left -= 1;
    }
    if result == ETXTBSY && is_any(|process| process.state == ProcState::LIVE && process.ender != NONE) {
        end::unsupported(&[b"the use of a file that a process, which is at its end, executes or has open for writing"]);
    }
    result
}

/// The kernel still has one of the other processes that are `which`, with what it executes and has open.
fn is_any(which: impl Fn(&Process) -> bool) -> bool {
    let others = (0..world().procs.len).filter(|&p| p != local().pid && which(&world().procs[p]));
    others.map(|p| process_of(p).real_pid).any(|pid| pid > 0 && is_running(pid))
}

fn is_running(pid: i32) -> bool {
    let mut path = [0u8; 32];
    let number = decimal(pid);
    let mut len = 0;
    for part in [&b"/proc/"[..], &number, b"/stat"] {
        path[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    let fd = raw!(libc::SYS_open, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
    if fd < 0 {
        return false;
    }
    let mut text = [0u8; 128];
    let n = raw!(libc::SYS_read, fd, text.as_mut_ptr(), text.len());
    raw!(libc::SYS_close, fd);
    // The name, in parentheses, may have any character; the state comes behind it (proc(5)).
    let text = &text[..n.max(0) as usize];
    let state = text.iter().rposition(|&byte| byte == b')').and_then(|at| text.get(at + 2));
    !matches!(state, None | Some(b'Z' | b'X'))
}
