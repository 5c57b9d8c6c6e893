//! What becomes of each system call of x86-64 Linux: the one table that says it. Nothing passes by default.

use crate::base::errno::{EACCES, ENOSYS, EPERM};
use Fate::{Fails, Mixed, Modelled, OnRequest, Real, Refused};

/// What becomes of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The model performs it; what it does not know of it, it refuses.
    Modelled,
    /// The model performs it on what belongs to it; on regular files, terminals and devices, and for memory, the kernel does.
    Mixed,
    /// The kernel performs it: it concerns memory, files, identity or limits of the caller alone, and does not wait for others.
    Real,
    /// It fails as it does for a user without privileges, or on a kernel without it: programs expect that and go on.
    Fails(i64),
    /// The execution ends with a report that names it.
    Refused,
    /// The kernel performs it where the user asks for that, by the kind it belongs to (`--uncontrolled`): a bit of [`KINDS`].
    /// Otherwise it fails with that error, as on a kernel without it, or is refused (0).
    OnRequest(u32, i64),
}

/// Kinds of calls that are not modelled and that the user may let through to the kernel: name, bit, and what then goes there.
pub const KINDS: [(&str, u32, &str); 4] = [
    ("inotify", 1, "events of files (inotify)"),
    ("fanotify", 2, "events of files (fanotify)"),
    ("io_uring", 4, "input and output by rings (io_uring)"),
    ("remap", 8, "pages of mappings in another order (remap_file_pages)"),
];

const INOTIFY: Fate = OnRequest(1, 0);
const FANOTIFY: Fate = OnRequest(2, 0);
const IO_URING: Fate = OnRequest(4, ENOSYS);
const REMAP: Fate = OnRequest(8, 0);

/// It fails as on a kernel without it.
const UNKNOWN: Fate = Fails(ENOSYS);
/// It fails as for a user without privileges.
const DENIED: Fate = Fails(EPERM);

/// Puts the table together from runs of calls, each with the number of its first.
macro_rules! calls {
    ($($first:literal: $($name:ident $fate:expr),+;)+) => {{
        let mut calls = [("", UNKNOWN); 463];
        let mut next = 0;
        $(
            assert!($first == next || $first == 424 && next == 335, "a call is missing or there twice");
            next = $first;
            $(
                calls[next] = (stringify!($name), $fate);
                next += 1;
            )+
        )+
        assert!(next == calls.len());
        calls
    }};
}

/// Name and fate by number. Numbers without a name, and those beyond, are unknown to the kernel: ENOSYS.
pub const CALLS: [(&str, Fate); 463] = calls! {
    0:   read Mixed, write Mixed, open Mixed, close Mixed, stat Real, fstat Mixed, lstat Real, poll Mixed,
         lseek Mixed, mmap Mixed, mprotect Real, munmap Mixed, brk Real, rt_sigaction Modelled,
         rt_sigprocmask Modelled, rt_sigreturn Real, ioctl Mixed, pread64 Mixed, pwrite64 Mixed, readv Mixed;
    20:  writev Mixed, access Real, pipe Modelled, select Mixed, sched_yield Modelled, mremap Mixed, msync Real,
         mincore Real, madvise Real, shmget Modelled, shmat Modelled, shmctl Modelled, dup Mixed, dup2 Mixed,
         pause Modelled, nanosleep Modelled, getitimer Modelled, alarm Modelled, setitimer Modelled, getpid Modelled;
    40:  sendfile Mixed, socket Modelled, connect Mixed, accept Mixed, sendto Mixed, recvfrom Mixed, sendmsg Mixed,
         recvmsg Mixed, shutdown Mixed, bind Mixed, listen Mixed, getsockname Mixed, getpeername Mixed,
         socketpair Modelled, setsockopt Mixed, getsockopt Mixed, clone Modelled, fork Modelled, vfork Modelled,
         execve Modelled;
    60:  exit Modelled, wait4 Modelled, kill Modelled, uname Real, semget Modelled, semop Modelled, semctl Modelled,
         shmdt Modelled, msgget Modelled, msgsnd Modelled, msgrcv Modelled, msgctl Modelled, fcntl Mixed, flock Mixed,
         fsync Mixed, fdatasync Mixed, truncate Real, ftruncate Mixed, getdents Mixed, getcwd Real;
    80:  chdir Real, fchdir Mixed, rename Real, mkdir Real, rmdir Real, creat Mixed, link Real, unlink Mixed,
         symlink Real, readlink Mixed, chmod Real, fchmod Mixed, chown Real, fchown Mixed, lchown Real, umask Real,
         gettimeofday Modelled, getrlimit Real, getrusage Mixed, sysinfo Real;
    100: times Modelled, ptrace DENIED, getuid Real, syslog DENIED, getgid Real, setuid Real, setgid Real,
         geteuid Real, getegid Real, setpgid Modelled, getppid Modelled, getpgrp Modelled, setsid Modelled,
         setreuid Real, setregid Real, getgroups Real, setgroups Real, setresuid Real, getresuid Real, setresgid Real;
    120: getresgid Real, getpgid Modelled, setfsuid Real, setfsgid Real, getsid Modelled, capget Real, capset Real,
         rt_sigpending Modelled, rt_sigtimedwait Modelled, rt_sigqueueinfo Modelled, rt_sigsuspend Modelled,
         sigaltstack Real, utime Real, mknod Mixed, uselib UNKNOWN, personality Real, ustat UNKNOWN, statfs Real,
         fstatfs Mixed, sysfs UNKNOWN;
    140: getpriority Real, setpriority Real, sched_setparam Real, sched_getparam Real, sched_setscheduler Real,
         sched_getscheduler Real, sched_get_priority_max Real, sched_get_priority_min Real,
         sched_rr_get_interval Real, mlock Real, munlock Real, mlockall Real, munlockall Real, vhangup DENIED,
         modify_ldt UNKNOWN, pivot_root DENIED, _sysctl UNKNOWN, prctl Real, arch_prctl Real, adjtimex Real;
    160: setrlimit Real, chroot Real, sync Real, acct DENIED, settimeofday DENIED, mount DENIED, umount2 DENIED,
         swapon DENIED, swapoff DENIED, reboot DENIED, sethostname DENIED, setdomainname DENIED, iopl DENIED,
         ioperm DENIED, create_module UNKNOWN, init_module DENIED, delete_module DENIED, get_kernel_syms UNKNOWN,
         query_module UNKNOWN, quotactl DENIED;
    180: nfsservctl UNKNOWN, getpmsg UNKNOWN, putpmsg UNKNOWN, afs_syscall UNKNOWN, tuxcall UNKNOWN, security UNKNOWN,
         gettid Modelled, readahead Mixed, setxattr Real, lsetxattr Real, fsetxattr Mixed, getxattr Real,
         lgetxattr Real, fgetxattr Mixed, listxattr Real, llistxattr Real, flistxattr Mixed, removexattr Real,
         lremovexattr Real, fremovexattr Mixed;
    200: tkill Modelled, time Modelled, futex Modelled, sched_setaffinity Modelled, sched_getaffinity Modelled,
         set_thread_area UNKNOWN, io_setup UNKNOWN, io_destroy UNKNOWN, io_getevents UNKNOWN, io_submit UNKNOWN,
         io_cancel UNKNOWN, get_thread_area UNKNOWN, lookup_dcookie UNKNOWN, epoll_create Modelled,
         epoll_ctl_old UNKNOWN, epoll_wait_old UNKNOWN, remap_file_pages REMAP, getdents64 Mixed,
         set_tid_address Modelled, restart_syscall Refused;
    220: semtimedop Modelled, fadvise64 Mixed, timer_create Modelled, timer_settime Modelled, timer_gettime Modelled,
         timer_getoverrun Modelled, timer_delete Modelled, clock_settime Modelled, clock_gettime Modelled,
         clock_getres Real, clock_nanosleep Modelled, exit_group Modelled, epoll_wait Mixed, epoll_ctl Mixed,
         tgkill Modelled, utimes Real, vserver UNKNOWN, mbind Real, set_mempolicy Real, get_mempolicy Real;
    240: mq_open Modelled, mq_unlink Modelled, mq_timedsend Modelled, mq_timedreceive Modelled, mq_notify Modelled,
         mq_getsetattr Modelled, kexec_load DENIED, waitid Modelled, add_key DENIED, request_key DENIED,
         keyctl DENIED, ioprio_set Real, ioprio_get Real, inotify_init INOTIFY, inotify_add_watch INOTIFY,
         inotify_rm_watch INOTIFY, migrate_pages DENIED, openat Mixed, mkdirat Real, mknodat Mixed;
    260: fchownat Real, futimesat Real, newfstatat Mixed, unlinkat Mixed, renameat Real, linkat Real, symlinkat Real,
         readlinkat Mixed, fchmodat Real, faccessat Real, pselect6 Mixed, ppoll Mixed, unshare DENIED,
         set_robust_list Modelled, get_robust_list Real, splice Mixed, tee Mixed, sync_file_range Mixed,
         vmsplice Mixed, move_pages DENIED;
    280: utimensat Real, epoll_pwait Mixed, signalfd Modelled, timerfd_create Modelled, eventfd Modelled,
         fallocate Mixed, timerfd_settime Mixed, timerfd_gettime Mixed, accept4 Mixed, signalfd4 Modelled,
         eventfd2 Modelled, epoll_create1 Modelled, dup3 Mixed, pipe2 Modelled, inotify_init1 INOTIFY, preadv Mixed,
         pwritev Mixed, rt_tgsigqueueinfo Modelled, perf_event_open Fails(EACCES), recvmmsg Mixed;
    300: fanotify_init FANOTIFY, fanotify_mark FANOTIFY, prlimit64 Real, name_to_handle_at Real,
         open_by_handle_at DENIED, clock_adjtime Real, syncfs Mixed, sendmmsg Mixed, setns DENIED, getcpu Modelled,
         process_vm_readv DENIED, process_vm_writev DENIED, kcmp DENIED, finit_module DENIED, sched_setattr Real,
         sched_getattr Real, renameat2 Real, seccomp Modelled, getrandom Modelled, memfd_create Real;
    320: kexec_file_load DENIED, bpf DENIED, execveat Modelled, userfaultfd DENIED, membarrier Real, mlock2 Real,
         copy_file_range Mixed, preadv2 Mixed, pwritev2 Mixed, pkey_mprotect Real, pkey_alloc Real, pkey_free Real,
         statx Mixed, io_pgetevents UNKNOWN, rseq Modelled;
    424: pidfd_send_signal Modelled, io_uring_setup IO_URING, io_uring_enter IO_URING, io_uring_register IO_URING,
         open_tree DENIED, move_mount DENIED, fsopen DENIED, fsconfig DENIED, fsmount DENIED, fspick DENIED,
         pidfd_open Modelled, clone3 Modelled, close_range Mixed, openat2 Mixed, pidfd_getfd Modelled, faccessat2 Real;
    440: process_madvise UNKNOWN, epoll_pwait2 Mixed, mount_setattr DENIED, quotactl_fd DENIED,
         landlock_create_ruleset UNKNOWN, landlock_add_rule UNKNOWN, landlock_restrict_self UNKNOWN,
         memfd_secret Real, process_mrelease UNKNOWN, futex_waitv Modelled, set_mempolicy_home_node Real,
         cachestat Real, fchmodat2 Real, map_shadow_stack UNKNOWN, futex_wake UNKNOWN, futex_wait UNKNOWN,
         futex_requeue UNKNOWN, statmount UNKNOWN, listmount UNKNOWN, lsm_get_self_attr UNKNOWN;
    460: lsm_set_self_attr UNKNOWN, lsm_list_modules UNKNOWN, mseal Real;
};

/// What becomes of call `nr`.
pub fn fate(nr: i64) -> Fate {
    usize::try_from(nr).ok().and_then(|nr| CALLS.get(nr)).map_or(UNKNOWN, |call| call.1)
}

/// The name on the command line of the kind with that bit.
pub fn kind_name(bit: u32) -> &'static str {
    KINDS.iter().find(|kind| kind.1 == bit).map_or("", |kind| kind.0)
}

/// The kinds that bits stand for: name and what goes to the kernel.
pub fn kinds_of(bits: u32) -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.into_iter().filter(move |kind| bits & kind.1 != 0).map(|kind| (kind.0, kind.2))
}

/// In the place of a number: pthread_testcancel, which is no system call.
pub const TESTCANCEL: i64 = -1;
/// The same: pthread_setcanceltype.
pub const SETCANCELTYPE: i64 = -2;
/// The same: pthread_setcancelstate.
pub const SETCANCELSTATE: i64 = -3;

/// The name of call `nr`, if it has one.
pub fn name(nr: i64) -> Option<&'static str> {
    match nr {
        TESTCANCEL => return Some("pthread_testcancel"),
        SETCANCELTYPE => return Some("pthread_setcanceltype"),
        SETCANCELSTATE => return Some("pthread_setcancelstate"),
        _ => {}
    }
    usize::try_from(nr).ok().and_then(|nr| CALLS.get(nr)).map(|call| call.0).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_a_place() {
        for (nr, known, what) in [
            (libc_numbers::READ, "read", Mixed),
            (libc_numbers::FUTEX, "futex", Modelled),
            (libc_numbers::MPROTECT, "mprotect", Real),
            (libc_numbers::IO_URING_SETUP, "io_uring_setup", OnRequest(4, ENOSYS)),
            (libc_numbers::MOUNT, "mount", Fails(EPERM)),
            (libc_numbers::INOTIFY_INIT, "inotify_init", OnRequest(1, 0)),
        ] {
            assert_eq!((name(nr), fate(nr)), (Some(known), what));
        }
        assert_eq!((name(-9), fate(-9)), (None, Fails(ENOSYS)));
        assert_eq!((name(350), fate(350)), (None, Fails(ENOSYS)));
        assert_eq!(fate(100_000), Fails(ENOSYS));
    }

    #[test]
    fn each_kind_has_calls_and_each_call_its_kind() {
        for (name, bit, what) in KINDS {
            assert!(bit.is_power_of_two() && !what.is_empty(), "{name}");
            assert_eq!(KINDS.iter().filter(|kind| kind.1 == bit || kind.0 == name).count(), 1, "{name}");
            assert!(CALLS.iter().any(|call| matches!(call.1, OnRequest(of, _) if of == bit)), "{name}");
        }
        for (name, fate) in CALLS {
            assert!(!matches!(fate, OnRequest(bit, _) if kind_name(bit).is_empty()), "{name}");
        }
        assert_eq!(kinds_of(5).map(|kind| kind.0).collect::<std::vec::Vec<_>>(), ["inotify", "io_uring"]);
    }

    /// Numbers of x86-64.
    mod libc_numbers {
        pub const READ: i64 = 0;
        pub const MPROTECT: i64 = 10;
        pub const MOUNT: i64 = 165;
        pub const FUTEX: i64 = 202;
        pub const INOTIFY_INIT: i64 = 253;
        pub const IO_URING_SETUP: i64 = 425;
    }
}
