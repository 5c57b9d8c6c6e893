//! System calls by name, and what is known of those that pass through to the kernel.

use vsrun_model::arena::{LIBC_NUMBERS, SHARED_FILES};

/// Uses of a file by several threads in an order that is not explored.
pub const FILES: &str = "some uses of files and other state by several threads";

/// Numbers of descriptors that libc takes inside of locks of its own.
pub const NUMBERS: &str = "some descriptors that libc uses by itself (syslog, time zones, users, hosts)";

/// The name of system call `nr`.
pub fn name(nr: i64) -> String {
    if nr == SHARED_FILES as i64 {
        return FILES.to_string();
    }
    if nr == LIBC_NUMBERS as i64 {
        return NUMBERS.to_string();
    }
    vsrun_model::calls::name(nr).map_or_else(|| format!("system call {nr}"), str::to_string)
}

#[rustfmt::skip]
/// Calls that can block or that reach other processes or threads.
const COMMUNICATING: [&str; 61] = [
    "pipe", "pipe2", "socket", "socketpair", "connect", "accept", "accept4", "bind", "listen", "sendto", "recvfrom",
    "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "poll", "ppoll", "select", "pselect6", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "signalfd",
    "signalfd4", "timerfd_create", "timerfd_settime", "timerfd_gettime", "inotify_init", "inotify_init1",
    "inotify_add_watch", "fanotify_init", "mq_open", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_unlink",
    "pause", "alarm", "setitimer", "timer_create", "timer_settime", "rt_sigsuspend", "rt_sigtimedwait", "splice",
    "tee", "vmsplice", "io_uring_setup", "io_uring_enter", "io_submit", "io_getevents", "process_vm_readv",
    "process_vm_writev", "pidfd_open", "pidfd_send_signal", "userfaultfd",
];

#[rustfmt::skip]
/// Calls in which a process waits for input.
const WAITING: [&str; 19] = [
    "read", "readv", "pread64", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4", "poll", "ppoll", "select",
    "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", "pause", "rt_sigsuspend", "rt_sigtimedwait",
    "mq_timedreceive",
];

/// Of the calls that went through to the kernel (how often, by number), those that could block or communicate.
pub fn communicating(passed: &[u32]) -> Vec<(String, u64)> {
    let counted = passed.iter().enumerate().filter(|(_, &n)| n > 0).map(|(nr, &n)| (name(nr as i64), u64::from(n)));
    counted.filter(|(name, _)| COMMUNICATING.contains(&name.as_str()) || name == FILES || name == NUMBERS).collect()
}

/// True if system call `nr` waits for input.
pub fn waits_for_input(nr: i64) -> bool {
    WAITING.contains(&name(nr).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        for (nr, text) in [(libc::SYS_read, "read"), (libc::SYS_futex, "futex"), (libc::SYS_clone3, "clone3")] {
            assert_eq!(name(nr), text);
        }
        assert_eq!(name(5000), "system call 5000");
    }

    #[test]
    fn every_listed_call_exists() {
        for call in COMMUNICATING.iter().chain(&WAITING) {
            assert!(vsrun_model::calls::CALLS.iter().any(|known| known.0 == *call), "{call}");
        }
        let mut passed = [0; 512];
        passed[libc::SYS_pipe2 as usize] = 2;
        passed[libc::SYS_mprotect as usize] = 7;
        assert_eq!(communicating(&passed), [("pipe2".to_string(), 2)]);
    }
}
