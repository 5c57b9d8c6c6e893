//! The first moments of a process that the kernel has made.

use super::{arena, local, model, process_of, Phase};
use crate::sys::errno::EAGAIN;
use crate::sys::{complain, die, dispatch, guard, raw};

const CLONE_PARENT: u64 = 0x8000;

/// A copy of this process, another child of who has made it: 0 in the copy, a negative error number where there is none. Processes that are over may still count for
/// a moment.
pub fn brother() -> i64 {
    const TRIES: u32 = 50;
    const PAUSE: [i64; 2] = [0, 10_000_000];
    for _ in 1..TRIES {
        let child = raw!(libc::SYS_clone, CLONE_PARENT, 0, 0, 0, 0);
        if child != EAGAIN {
            return child;
        }
        raw!(libc::SYS_nanosleep, PAUSE.as_ptr(), 0);
    }
    raw!(libc::SYS_clone, CLONE_PARENT, 0, 0, 0, 0)
}

/// First steps of every process that the kernel has made: it is known, caught, and lives as long as vsrun.
pub fn begin() {
    process_of(local().pid).real_pid = raw!(libc::SYS_getpid) as i32;
    tell_faults();
    live_with_vsrun();
    arm();
}

/// vsrun is told which faults of this process are answered.
pub fn tell_faults() {
    let (start, end) = guard::table();
    process_of(local().pid).answered = [start, end];
}

/// Arms the net in this kernel thread; the shim's own text stays exempt.
pub fn arm() {
    if !dispatch::arm(local().text) {
        fails(b"Syscall User Dispatch could not be armed");
    }
}

/// Ends the process, and the execution, because vsrun is at fault.
fn fails(text: &[u8]) -> ! {
    if local().phase == Phase::Off {
        complain(&[b"vsrun bug: ", text]);
        die(4);
    }
    model().fail(local().cur, text);
    die(0)
}

/// Dies with vsrun, whose child every process of a world is.
pub fn live_with_vsrun() {
    raw!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    if raw!(libc::SYS_getppid) != arena().control.vsrun_pid as i64 && arena().control.vsrun_pid != 0 {
        die(1);
    }
}
