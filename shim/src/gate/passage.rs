//! Calls that are passed through to the kernel.

use vsrun_model::progress::Advance;
use vsrun_model::ThreadState;

use super::{end, fiber, local, machine, me, model, turn, world};
use crate::sys::{any_of, raw6, store};

/// Passes a call through to the kernel, counted, and visible to vsrun while it lasts.
pub fn through(nr: i64, a: [u64; 6]) -> i64 {
    machine().count_call(nr);
    let record = &raw mut fiber().in_call as u64;
    store(record, [nr as u64 + 1, a[0], a[1], a[2], a[3], a[4], a[5]]);
    let result = raw6(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    store(record, 0u64);
    if me().state == ThreadState::EXITED {
        end::bug(b"a finished thread made a system call");
    }
    if result > 0 {
        note_output(nr, &a);
    }
    turn::deliver();
    result
}

/// What a call has written that the kernel has performed is progress.
#[inline]
fn note_output(nr: i64, a: &[u64; 6]) {
    let fd = match nr {
        any_of!(SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_sendfile) => a[0],
        libc::SYS_copy_file_range => a[2],
        _ => return,
    };
    model().advances(local().cur, Advance::OUTPUT, fd as i32);
}

/// Counts a call about which the model does not know everything, so that nothing is claimed to be complete.
pub fn note_passed(nr: i64) {
    machine().count_call(nr);
}

/// True if the process has had a second thread, which may still notice what this one does; not of the child of a vfork.
pub fn is_threaded() -> bool {
    world().procs[local().pid].threaded && !local().borrowed
}
