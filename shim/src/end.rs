//! The end of an execution.

use vsrun_model::arena::Mode;
use vsrun_model::object::NONE;
use vsrun_model::End;

use crate::local::{arena, local, world};
use crate::{raw, sys};

/// The execution is over, `World::end` says how: tell vsrun, by ending this process or (when it wants to look at the
/// world) by stopping it.
pub fn finish() -> ! {
    if arena().control.mode == Mode::DIRECT {
        crate::direct::show();
    }
    if arena().control.stop_at_end != 0 {
        loop {
            raw!(libc::SYS_kill, raw!(libc::SYS_getpid), libc::SIGSTOP);
        }
    }
    die(0)
}

/// Ends this process for the kernel.
pub fn die(status: i32) -> ! {
    loop {
        raw!(libc::SYS_exit_group, status);
    }
}

/// Ends the execution because of something that vsrun does not support.
pub fn unsupported(parts: &[&[u8]]) -> ! {
    let t = local().cur;
    if t == NONE {
        sys::complain(&[b"vsrun: unsupported: ", parts[0]]);
        die(2);
    }
    world().finish_with(End::UNSUPPORTED, t, parts);
    finish()
}

/// Ends the execution because vsrun itself is at fault.
pub fn bug(text: &[u8]) -> ! {
    if local().phase == crate::local::Phase::Off {
        sys::complain(&[b"vsrun bug: ", text]);
        die(4);
    }
    world().end = End::RUNNING;
    world().finish_with(End::BUG, local().cur, &[text]);
    finish()
}

/// Ends the execution with a violated assertion or abort.
pub fn assertion(parts: &[&[u8]]) -> ! {
    world().finish_with(End::ASSERT, local().cur, parts);
    finish()
}
