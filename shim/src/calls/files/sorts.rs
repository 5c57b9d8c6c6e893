//! Which calls go by state that is shared, by what they do: for the table in `cells`.

use crate::sys::any_of;

/// Whether a call has a line in the table.
pub fn has_line(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_umask SYS_fchdir SYS_rt_sigaction SYS_getpgid SYS_getsid SYS_getpgrp SYS_setpgid SYS_setsid SYS_getpriority
            SYS_setpriority SYS_sched_getscheduler SYS_sched_setscheduler SYS_sched_getparam SYS_sched_setparam
            SYS_sched_rr_get_interval SYS_sched_getattr SYS_sched_setattr SYS_sched_getaffinity SYS_sched_setaffinity
            SYS_ioprio_get SYS_ioprio_set SYS_getrlimit SYS_setrlimit SYS_prlimit64 SYS_prctl SYS_fcntl SYS_getsockopt
            SYS_setsockopt SYS_listen SYS_close SYS_dup2 SYS_dup3 SYS_membarrier SYS_shmget SYS_shmat SYS_shmdt SYS_shmctl SYS_semget
        )
    ) || is_of_ids(nr)
        || writes_file(nr)
        || moves_data(nr)
        || makes_number(nr)
        || needs_permission(nr)
}

/// Calls that read or write who the process is.
pub fn is_of_ids(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_setuid SYS_setgid SYS_setreuid
            SYS_setregid SYS_setresuid SYS_setresgid SYS_setgroups
        )
    )
}

/// Calls that go by the options of a socket: how long they wait, what comes along with a message.
pub fn moves_data(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_read SYS_readv SYS_write SYS_writev SYS_recvfrom SYS_recvmsg SYS_recvmmsg SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_accept
            SYS_accept4 SYS_connect SYS_vmsplice SYS_sendfile SYS_splice
        )
    )
}

/// Calls that wait where a pipe is full.
pub fn writes_pipe(nr: i64) -> bool {
    matches!(nr, any_of!(SYS_write SYS_writev SYS_vmsplice))
}

/// Calls that fail where the process has as many descriptors as it may.
pub fn makes_number(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_open SYS_openat SYS_creat SYS_socket SYS_socketpair SYS_pipe SYS_pipe2 SYS_accept SYS_accept4 SYS_dup SYS_dup2 SYS_dup3
            SYS_epoll_create SYS_epoll_create1 SYS_eventfd SYS_eventfd2 SYS_timerfd_create SYS_signalfd SYS_signalfd4 SYS_memfd_create
            SYS_mq_open SYS_recvmsg SYS_recvmmsg
        )
    )
}

/// Calls beside those on paths that are permitted to some users only.
pub fn needs_permission(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_semget SYS_semop SYS_semtimedop SYS_semctl
            SYS_msgget SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_shmget SYS_shmat SYS_shmctl SYS_mq_open SYS_mq_unlink SYS_bind
            SYS_setpriority SYS_sched_setscheduler SYS_sched_setparam SYS_sched_setattr SYS_setrlimit SYS_prlimit64
        )
    )
}

/// Calls that a seal may forbid.
pub fn writes_file(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_ftruncate SYS_fallocate SYS_mmap)
    )
}
