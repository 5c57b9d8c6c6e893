//! The end of an execution.

use vsrun_model::arena::Mode;
use vsrun_model::{End, Misuse, ObjId, Pid, NONE};

use super::{arena, back, direct, local, machine, model, others, pages, process_of, view, world, Phase};
use crate::sys::errno::{EAGAIN, EMFILE, ENFILE, ENOMEM};
use crate::sys::{complain, die, raw};

/// The execution is over, `World::end` says how: tell vsrun, by ending this process or (when it wants to look at the
/// world) by stopping it.
pub fn finish() -> ! {
    if arena().control.mode == Mode::DIRECT {
        direct::show();
    }
    if arena().control.stop_at_end != 0 {
        loop {
            raw!(libc::SYS_kill, raw!(libc::SYS_getpid), libc::SIGSTOP);
        }
    }
    back::over();
    pages::tell();
    die(0)
}

/// Ends the execution because of something that vsrun does not support.
pub fn unsupported(parts: &[&[u8]]) -> ! {
    let t = local().cur;
    if t == NONE {
        complain(&[b"vsrun: unsupported: ", parts[0]]);
        die(2);
    }
    model().finish_with(End::UNSUPPORTED, t, parts);
    finish()
}

/// Ends the execution because the program has more of something than there is room for: others may need less.
pub fn no_room(parts: &[&[u8]]) -> ! {
    let t = local().cur;
    if t == NONE {
        unsupported(parts);
    }
    model().finish_with(End::ROOM, t, parts);
    finish()
}

/// Ends the execution because the kernel refuses `what` with `error`, for want of room around the program: that is no behaviour of the
/// closed system, and natively, with fewer processes and mappings, there may have been room.
pub fn refused(what: &[u8], error: i64) -> ! {
    let (name, limit): (&[u8], &[u8]) = match error {
        EAGAIN => (b"EAGAIN", b"the number of processes and threads of this user (ulimit -u) or container (pids.max)"),
        ENOMEM => {
            (b"ENOMEM", b"memory: what is free, the address space of a process (ulimit -v), the container's bound")
        }
        EMFILE => (b"EMFILE", b"the descriptors of a process (ulimit -n), of which vsrun needs some"),
        ENFILE => (b"ENFILE", b"the open files of the whole system (fs.file-max)"),
        _ => (b"an error", b"not known"),
    };
    let parts: [&[u8]; 7] = [
        b"the kernel refused ",
        what,
        b" (",
        name,
        b"), which the program may have; the limit is ",
        limit,
        b"; raise it and begin again",
    ];
    let t = local().cur;
    if t == NONE {
        complain(&[b"vsrun: environment: ", what, b" was refused (", name, b"); the limit is ", limit]);
        die(2);
    }
    model().finish_with(End::REFUSED, t, &parts);
    finish()
}

/// Ends the execution because vsrun itself is at fault.
pub fn bug(text: &[u8]) -> ! {
    if local().phase == Phase::Off {
        complain(&[b"vsrun bug: ", text]);
        die(4);
    }
    model().fail(local().cur, text);
    finish()
}

/// Ends the execution with a violated assertion or abort.
pub fn assertion(parts: &[&[u8]]) -> ! {
    model().finish_with(End::ASSERT, local().cur, parts);
    finish()
}

/// Ends the execution because memory that has been freed is used or freed again.
pub fn freed(parts: &[&[u8]]) -> ! {
    model().finish_with(End::FREED, local().cur, parts);
    finish()
}

/// The running thread misuses an object: that ends the execution, unless it is allowed (`--allow-misuse`).
pub fn misuse(object: ObjId, what: Misuse) {
    if !world().allow_misuse {
        model().finish(End::MISUSE, local().cur, object, what.0);
        finish();
    }
}

/// Ends the execution because more signals are pending than there is room for.
pub fn no_room_for_signal() -> ! {
    no_room(&[b"more signals are pending at a time than vsrun can hold"])
}

/// See [`view::loses_stores`].
pub fn loses_stores() -> ! {
    unsupported(&[b"with --memory tso, the end of a process while stores to memory that others share are in a buffer"])
}

/// Ends process `p`, which is over in the model, for the kernel.
pub fn kill(p: Pid) {
    if view::loses_stores(p) {
        loses_stores();
    }
    if machine().original_of(p).is_some() {
        // It has not been copied in this execution, and is not going to be.
        machine().stands_for_none(p);
        return;
    }
    // Where it is to go back later, it waits for a turn that does not come.
    if !machine().holds_processes() {
        others::end_process(process_of(p).real_pid);
    }
}
