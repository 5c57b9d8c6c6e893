//! Calls about descriptors that are not there, as far as the program is concerned: see `vsrun_model::calls`.

use vsrun_model::calls::{fate, name, Fate};

use crate::end;

/// Numbers that `libc` may not know, by x86-64's table.
mod nr {
    pub const PIDFD_SEND_SIGNAL: i64 = 424;
    pub const IO_URING_SETUP: i64 = 425;
    pub const PIDFD_OPEN: i64 = 434;
    pub const PIDFD_GETFD: i64 = 438;
}

/// Answers call `nr` if it is one of these: it fails as it would on a kernel without it, and the program goes on without,
/// or it is refused.
pub fn call(nr: i64) -> Option<i64> {
    let known = matches!(
        nr,
        libc::SYS_io_setup
            | libc::SYS_inotify_init
            | libc::SYS_inotify_init1
            | libc::SYS_fanotify_init
            | libc::SYS_userfaultfd
            | libc::SYS_perf_event_open
            | libc::SYS_bpf
            | libc::SYS_kcmp
            | libc::SYS_process_vm_readv
            | libc::SYS_process_vm_writev
            | nr::IO_URING_SETUP
            | nr::PIDFD_OPEN
            | nr::PIDFD_SEND_SIGNAL
            | nr::PIDFD_GETFD
    );
    match fate(nr) {
        _ if !known => None,
        Fate::Fails(error) => Some(-error),
        _ => end::unsupported(&[name(nr).unwrap_or("a system call").as_bytes(), b" is not modelled"]),
    }
}
