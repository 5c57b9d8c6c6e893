//! Calls that are not there, as far as the program is concerned: it gets the error that a kernel without them gives, or
//! one that forbids them, and goes on without, as it must be able to. What programs cannot do without is refused.

use crate::end;

/// pidfd_send_signal and the rest of the numbers that `libc` may not know, by x86-64's table.
mod nr {
    pub const PIDFD_SEND_SIGNAL: i64 = 424;
    pub const IO_URING_SETUP: i64 = 425;
    pub const PIDFD_OPEN: i64 = 434;
    pub const PIDFD_GETFD: i64 = 438;
}

/// Answers call `nr` if it is one of these.
pub fn call(nr: i64) -> Option<i64> {
    let error = match nr {
        // Asynchronous input and output: programs fall back to threads or epoll.
        libc::SYS_io_setup | nr::IO_URING_SETUP => libc::ENOSYS,
        nr::PIDFD_OPEN | nr::PIDFD_SEND_SIGNAL | nr::PIDFD_GETFD => libc::ENOSYS,
        libc::SYS_userfaultfd | libc::SYS_fanotify_init => libc::ENOSYS,
        libc::SYS_perf_event_open => libc::EACCES,
        libc::SYS_bpf | libc::SYS_kcmp => libc::EPERM,
        libc::SYS_inotify_init | libc::SYS_inotify_init1 => {
            end::unsupported(&[b"inotify: waiting for changes of files (inotify_init)"])
        }
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
            end::unsupported(&[b"reaching into the memory of another process (process_vm_readv, process_vm_writev)"])
        }
        _ => return None,
    };
    Some(-i64::from(error))
}
