//! What a process does that a copy of it would not have, or that is outside of it and nobody puts back: see `gate::copies`. All else that a process has a fork copies,
//! vsrun puts back (what is shared, places in files and their flags), or the model has.

use super::bare::{any_of, bare};

/// How a process is copied that has originals, as far as its calls are concerned. It stands in its own memory, so copies have it.
#[derive(Clone, Copy)]
pub struct Copied {
    /// It has something that a fork does not copy.
    pub lacks: bool,
    /// Who is told of calls that leave something outside of the process, as far as is known here; `None`: it has no originals.
    pub outside: Option<fn(i64, [u64; 6])>,
}

impl Copied {
    pub(super) const NEW: Copied = Copied { lacks: false, outside: None };

    /// The call is about to be made.
    pub(super) fn looks(&mut self, nr: i64, a: [u64; 6]) {
        match nr {
            libc::SYS_mlock | libc::SYS_mlock2 | libc::SYS_mlockall => self.lacks = true,
            libc::SYS_madvise if matches!(a[2] as i32, libc::MADV_DONTFORK | libc::MADV_WIPEONFORK) => {
                self.lacks = true
            }
            libc::SYS_mmap if a[3] as i32 & libc::MAP_LOCKED != 0 => self.lacks = true,
            libc::SYS_prctl if a[0] as i32 == libc::PR_SET_CHILD_SUBREAPER => self.lacks |= a[1] != 0,
            _ => {}
        }
        if let Some(tell) = self.outside.filter(|_| !Copied::stays_inside(nr, a)) {
            tell(nr, a);
        }
    }

    /// A signal that the process has sent to itself has not come: a copy would not have it.
    pub(super) fn awaits_signal(&mut self) {
        self.lacks = true;
    }

    fn stays_inside(nr: i64, a: [u64; 6]) -> bool {
        match nr {
            libc::SYS_fcntl => matches!(
                a[1] as i32,
                libc::F_GETFD
                    | libc::F_GETFL
                    | libc::F_SETFD
                    | libc::F_SETFL
                    | libc::F_DUPFD
                    | libc::F_DUPFD_CLOEXEC
                    | libc::F_GETPIPE_SZ
                    | libc::F_GET_SEALS
            ),
            libc::SYS_read | libc::SYS_readv => has_place(a[0]),
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev => keeps_nothing(a[0]),
            libc::SYS_ftruncate | libc::SYS_fallocate => has_no_name(a[0]),
            libc::SYS_ioctl => matches!(a[1], libc::TCGETS | libc::TIOCGWINSZ | libc::FIONREAD | libc::FIONBIO),
            // What is sent to the process itself is its own; others are ended by what the model has of them.
            libc::SYS_kill | libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => true,
            _ => is_copied(nr),
        }
    }
}

/// What the call does is in the process, whatever its arguments are, and a fork copies it; or it only asks.
const fn is_copied(nr: i64) -> bool {
    matches!(
        nr,
        any_of!(
            SYS_madvise SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_brk SYS_mlock SYS_mlock2 SYS_mlockall
            SYS_munlock SYS_munlockall SYS_mincore SYS_msync SYS_open SYS_openat SYS_openat2 SYS_dup SYS_dup2
            SYS_dup3 SYS_close SYS_close_range SYS_memfd_create SYS_eventfd2 SYS_pipe2 SYS_socketpair SYS_pread64
            SYS_preadv SYS_getdents64 SYS_fadvise64 SYS_prlimit64 SYS_getrlimit SYS_setrlimit SYS_prctl
            SYS_arch_prctl SYS_rt_sigaction SYS_rt_sigpending SYS_clone SYS_clone3 SYS_fork SYS_vfork SYS_execve
            SYS_execveat SYS_umask SYS_chdir SYS_fchdir SYS_chroot SYS_setuid SYS_setgid SYS_setreuid SYS_setregid
            SYS_setresuid SYS_setresgid SYS_setgroups SYS_setfsuid SYS_setfsgid SYS_capset SYS_capget SYS_personality
            SYS_setpriority SYS_sched_setscheduler SYS_sched_setparam SYS_sched_setaffinity SYS_sched_setattr
            SYS_sched_getattr SYS_getpgid SYS_getpgrp SYS_getsid SYS_set_robust_list SYS_get_robust_list
            SYS_set_tid_address SYS_rseq SYS_membarrier SYS_process_vm_readv SYS_fsync SYS_fdatasync
            SYS_restart_syscall SYS_poll SYS_exit
        )
    )
}

/// A file with places in it, which vsrun puts back or which was opened since; or the one that is always empty.
pub(super) fn has_place(fd: u64) -> bool {
    let Some(stat) = stat_of(fd) else { return false };
    const NULL: u64 = 1 << 8 | 3;
    let empty = stat.st_mode & libc::S_IFMT == libc::S_IFCHR && stat.st_rdev == NULL;
    empty || stat.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// A file without a name, which vsrun puts back; also what the program prints goes to one.
fn has_no_name(fd: u64) -> bool {
    stat_of(fd).is_some_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFREG && stat.st_nlink == 0)
}

/// The same, or a device that keeps nothing of what is written there, or none at all.
fn keeps_nothing(fd: u64) -> bool {
    // null, zero, full.
    const DEVICES: [u64; 3] = [1 << 8 | 3, 1 << 8 | 5, 1 << 8 | 7];
    let device = |stat: libc::stat| stat.st_mode & libc::S_IFMT == libc::S_IFCHR && DEVICES.contains(&stat.st_rdev);
    has_no_name(fd) || stat_of(fd).is_none_or(device)
}

fn stat_of(fd: u64) -> Option<libc::stat> {
    // SAFETY: a struct of numbers, of which all zeros is a value.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    (bare(libc::SYS_fstat, [fd, &raw mut stat as u64, 0, 0, 0, 0]) >= 0).then_some(stat)
}
