//! Which of its caller's memory each system call uses, and how: what the kernel reads and writes there is an access like one of an
//! instruction. From the manual pages and the kernel's declarations (include/linux/syscalls.h), for x86-64.

use crate::base::calls::CALLS;

/// How memory is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It is read, when the call begins.
    Reads,
    /// It is written, by a call that succeeds.
    Writes,
    /// It is read, and written by a call that succeeds.
    Changes,
    /// It is written by a call that gives more than 0.
    WritesIfAny,
    /// It is written by a call that a signal interrupts.
    WritesInterrupted,
}

/// How much memory is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// So many bytes.
    Bytes(u32),
    /// An argument, times so many bytes.
    Of(u8, u32),
    /// What the call gives, times so many bytes; an argument times as many bytes at most.
    Given(u8, u32),
    /// `struct msgbuf`: a number of 8 bytes and as many bytes as an argument says,
    Typed(u8),
    /// or, of those, as many as the call gives.
    TypedGiven(u8),
    /// A text and the NUL behind it.
    Text,
    /// An array of addresses of texts, with a null behind it.
    Texts,
    /// So many bytes as the number (4 bytes) at the address in an argument says.
    Told(u8),
    /// An argument is the number of bits, in words of 8 bytes.
    Bits(u8),
    /// A byte for each page of as many bytes as an argument says.
    Pages(u8),
    /// `struct iovec`, as many as an argument says, and what they are about: all of it, or where it is written what the call gives.
    Vectors(u8),
    /// `struct msghdr` and what it is about, the same.
    Message,
    /// `struct mmsghdr`, as many as an argument says.
    Messages(u8),
}

/// A stretch of memory that a call uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The argument that has its address, from 0; a null is none.
    pub argument: u8,
    /// How it is used.
    pub way: Way,
    /// How long it is.
    pub size: Size,
}

/// The buffers of a call; `None`: they are not known, or its command decides.
type Buffers = Option<&'static [Buffer]>;

/// Most buffers of a call.
pub const MAX_BUFFERS: usize = 5;

/// Two names are the same.
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut n = 0;
    while n < a.len() && n < b.len() && a[n] == b[n] {
        n += 1;
    }
    n == a.len() && n == b.len()
}

const fn number(name: &str) -> usize {
    let mut nr = 0;
    while !same(CALLS[nr].0, name) {
        nr += 1;
    }
    nr
}

macro_rules! buffers {
    ($($($name:ident)+: $($way:ident $argument:literal $size:expr),*;)+) => {{
        let mut all: [Buffers; CALLS.len()] = [None; CALLS.len()];
        $(
            let buffers: &'static [Buffer] = &[$(Buffer { argument: $argument, way: Way::$way, size: $size }),*];
            let names = [$(stringify!($name)),+];
            let mut n = 0;
            while n < names.len() {
                let nr = number(names[n]);
                assert!(all[nr].is_none(), "a call is there twice");
                all[nr] = Some(buffers);
                n += 1;
            }
        )+
        all
    }};
}

const STAT: Size = Bytes(144);
const STATFS: Size = Bytes(120);
const TIMESPEC: Size = Bytes(16);
const INTERVAL: Size = Bytes(32);
const SET: Size = Bytes(8);
const INFO: Size = Bytes(128);
const RUSAGE: Size = Bytes(144);
const INT: Size = Bytes(4);

use Size::{Bits, Bytes, Given, Message, Messages, Of, Pages, Text, Texts, Told, Typed, TypedGiven, Vectors};

/// By number of the call.
static BUFFERS: [Buffers; CALLS.len()] = buffers! {
    read pread64 getdents getdents64: Writes 1 Given(2, 1);
    write pwrite64: Reads 1 Of(2, 1);
    readv preadv preadv2: Writes 1 Vectors(2);
    writev pwritev pwritev2 vmsplice: Reads 1 Vectors(2);
    open creat access chdir rmdir mkdir unlink chmod chown lchown truncate mknod chroot mq_unlink: Reads 0 Text;
    openat mkdirat unlinkat mknodat fchmodat fchmodat2 fchownat faccessat faccessat2: Reads 1 Text;
    stat lstat: Reads 0 Text, Writes 1 STAT;
    fstat: Writes 1 STAT;
    newfstatat: Reads 1 Text, Writes 2 STAT;
    statx: Reads 1 Text, Writes 4 Bytes(256);
    statfs: Reads 0 Text, Writes 1 STATFS;
    fstatfs: Writes 1 STATFS;
    rename link symlink: Reads 0 Text, Reads 1 Text;
    renameat renameat2 linkat: Reads 1 Text, Reads 3 Text;
    symlinkat: Reads 0 Text, Reads 2 Text;
    readlink: Reads 0 Text, Writes 1 Given(2, 1);
    readlinkat: Reads 1 Text, Writes 2 Given(3, 1);
    utime: Reads 0 Text, Reads 1 Bytes(16);
    utimes: Reads 0 Text, Reads 1 Bytes(32);
    utimensat futimesat: Reads 1 Text, Reads 2 Bytes(32);
    openat2: Reads 1 Text, Reads 2 Of(3, 1);
    memfd_create: Reads 0 Text;
    setxattr lsetxattr: Reads 0 Text, Reads 1 Text, Reads 2 Of(3, 1);
    fsetxattr: Reads 1 Text, Reads 2 Of(3, 1);
    getxattr lgetxattr: Reads 0 Text, Reads 1 Text, Writes 2 Given(3, 1);
    fgetxattr: Reads 1 Text, Writes 2 Given(3, 1);
    listxattr llistxattr: Reads 0 Text, Writes 1 Given(2, 1);
    flistxattr: Writes 1 Given(2, 1);
    removexattr lremovexattr: Reads 0 Text, Reads 1 Text;
    fremovexattr: Reads 1 Text;
    getcwd: Writes 0 Given(1, 1);
    mincore: Writes 2 Pages(1);
    poll: Changes 0 Of(1, 8);
    // libc hands the kernel a copy of the time.
    ppoll: Changes 0 Of(1, 8), Reads 2 TIMESPEC, Reads 3 SET;
    select: Changes 1 Bits(0), Changes 2 Bits(0), Changes 3 Bits(0), Changes 4 TIMESPEC;
    pselect6: Changes 1 Bits(0), Changes 2 Bits(0), Changes 3 Bits(0), Reads 4 TIMESPEC;
    pipe pipe2: Writes 0 Bytes(8);
    sendfile: Changes 2 SET;
    splice copy_file_range: Changes 1 SET, Changes 3 SET;
    connect bind: Reads 1 Of(2, 1);
    accept accept4 getsockname getpeername: Changes 2 INT, Writes 1 Told(2);
    sendto: Reads 1 Of(2, 1), Reads 4 Of(5, 1);
    recvfrom: Changes 5 INT, Writes 1 Given(2, 1), Writes 4 Told(5);
    sendmsg: Reads 1 Message;
    recvmsg: Writes 1 Message;
    sendmmsg: Reads 1 Messages(2);
    recvmmsg: Writes 1 Messages(2), Changes 4 TIMESPEC;
    socketpair: Writes 3 Bytes(8);
    setsockopt: Reads 3 Of(4, 1);
    getsockopt: Changes 4 INT, Writes 3 Told(4);
    execve: Reads 0 Text, Reads 1 Texts, Reads 2 Texts;
    execveat: Reads 1 Text, Reads 2 Texts, Reads 3 Texts;
    uname: Writes 0 Bytes(390);
    wait4: WritesIfAny 1 INT, WritesIfAny 3 RUSAGE;
    waitid: Writes 2 INFO, Writes 4 RUSAGE;
    semop: Reads 1 Of(2, 6);
    semtimedop: Reads 1 Of(2, 6), Reads 3 TIMESPEC;
    msgsnd: Reads 1 Typed(2);
    msgrcv: Writes 1 TypedGiven(2);
    nanosleep: Reads 0 TIMESPEC, WritesInterrupted 1 TIMESPEC;
    clock_nanosleep: Reads 2 TIMESPEC, WritesInterrupted 3 TIMESPEC;
    getitimer: Writes 1 INTERVAL;
    setitimer: Reads 1 INTERVAL, Writes 2 INTERVAL;
    gettimeofday: Writes 0 Bytes(16), Writes 1 Bytes(8);
    clock_gettime clock_getres: Writes 1 TIMESPEC;
    clock_settime: Reads 1 TIMESPEC;
    clock_adjtime: Changes 1 Bytes(208);
    adjtimex: Changes 0 Bytes(208);
    time: Writes 0 SET;
    times: Writes 0 INTERVAL;
    getrusage: Writes 1 RUSAGE;
    getrlimit: Writes 1 Bytes(16);
    setrlimit: Reads 1 Bytes(16);
    prlimit64: Reads 2 Bytes(16), Writes 3 Bytes(16);
    sysinfo: Writes 0 Bytes(112);
    getgroups: Writes 1 Given(0, 4);
    setgroups: Reads 1 Of(0, 4);
    getresuid getresgid: Writes 0 INT, Writes 1 INT, Writes 2 INT;
    capget: Changes 0 Bytes(8), Writes 1 Bytes(24);
    capset: Reads 0 Bytes(8), Reads 1 Bytes(24);
    rt_sigaction: Reads 1 INTERVAL, Writes 2 INTERVAL;
    rt_sigprocmask: Reads 1 SET, Writes 2 SET;
    rt_sigpending: Writes 0 SET;
    rt_sigtimedwait: Reads 0 SET, Reads 2 TIMESPEC, Writes 1 INFO;
    rt_sigqueueinfo: Reads 2 INFO;
    rt_tgsigqueueinfo: Reads 3 INFO;
    pidfd_send_signal: Reads 2 INFO;
    rt_sigsuspend: Reads 0 SET;
    sigaltstack: Reads 0 Bytes(24), Writes 1 Bytes(24);
    sched_setparam: Reads 1 INT;
    sched_getparam: Writes 1 INT;
    sched_setscheduler: Reads 2 INT;
    sched_rr_get_interval: Writes 1 TIMESPEC;
    sched_setattr: Reads 1 Bytes(48);
    sched_getattr: Writes 1 Of(2, 1);
    sched_setaffinity: Reads 2 Of(1, 1);
    sched_getaffinity: Writes 2 Given(1, 1);
    get_robust_list: Writes 1 Bytes(8), Writes 2 Bytes(8);
    getcpu: Writes 0 INT, Writes 1 INT;
    getrandom: Writes 0 Given(1, 1);
    timer_create: Reads 1 Bytes(64), Writes 2 INT;
    timer_settime: Reads 2 INTERVAL, Writes 3 INTERVAL;
    timer_gettime: Writes 1 INTERVAL;
    timerfd_settime: Reads 2 INTERVAL, Writes 3 INTERVAL;
    timerfd_gettime: Writes 1 INTERVAL;
    signalfd signalfd4: Reads 1 SET;
    epoll_wait: Writes 1 Given(2, 12);
    epoll_pwait: Writes 1 Given(2, 12), Reads 4 SET;
    epoll_pwait2: Writes 1 Given(2, 12), Reads 3 TIMESPEC, Reads 4 SET;
    epoll_ctl: Reads 3 Bytes(12);
    mq_open: Reads 0 Text, Reads 3 Bytes(64);
    mq_timedsend: Reads 1 Of(2, 1), Reads 4 TIMESPEC;
    mq_timedreceive: Writes 1 Given(2, 1), Writes 3 INT, Reads 4 TIMESPEC;
    mq_notify: Reads 1 Bytes(64);
    mq_getsetattr: Reads 1 Bytes(64), Writes 2 Bytes(64);
    cachestat: Reads 1 Bytes(16), Writes 2 Bytes(40);
    get_mempolicy: Writes 0 INT, Writes 1 Bits(2);
    mbind: Reads 3 Bits(4);
    set_mempolicy: Reads 1 Bits(2);
    futex_waitv: Reads 0 Of(1, 24), Reads 3 TIMESPEC;
    // Their words are objects, and what libc keeps with a thread is its own.
    futex set_robust_list set_tid_address rseq clone clone3:;
    close lseek mmap mprotect munmap brk rt_sigreturn sched_yield mremap msync madvise shmget shmat shmdt dup dup2 dup3 pause alarm
    getpid socket shutdown listen fork vfork exit exit_group kill semget msgget flock fsync fdatasync ftruncate fchdir fchmod fchown
    umask getuid getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid setregid setresuid setresgid getpgid
    setfsuid setfsgid getsid personality getpriority setpriority sched_getscheduler sched_get_priority_max sched_get_priority_min
    mlock munlock mlockall munlockall mlock2 sync gettid readahead tkill tgkill epoll_create epoll_create1 fadvise64 timer_getoverrun
    timer_delete ioprio_set ioprio_get tee sync_file_range timerfd_create eventfd eventfd2 fallocate syncfs membarrier pkey_mprotect
    pkey_alloc pkey_free pidfd_open close_range pidfd_getfd memfd_secret set_mempolicy_home_node mseal seccomp:;
};

/// What commands of `name` use, by number; `None`: that is not known. Those of fcntl and ioctl that give or change flags use nothing.
fn by_command(name: &str, command: u32) -> Option<&'static [Buffer]> {
    const fn one(argument: u8, way: Way, size: u32) -> Buffer {
        Buffer { argument, way, size: Bytes(size) }
    }
    Some(match (name, command) {
        // F_DUPFD to F_SETFL, F_SETOWN to F_GETSIG, leases, F_NOTIFY, F_DUPFD_CLOEXEC, the size of a pipe, seals.
        ("fcntl", 0..=4 | 8..=11 | 1024..=1026 | 1030..=1034) => &[],
        // F_GETLK and F_OFD_GETLK; F_SETLK, F_SETLKW and those of descriptions; F_SETOWN_EX, F_GETOWN_EX.
        ("fcntl", 5 | 36) => const { &[one(2, Way::Changes, 32)] },
        ("fcntl", 6 | 7 | 37 | 38) => const { &[one(2, Way::Reads, 32)] },
        ("fcntl", 15) => const { &[one(2, Way::Reads, 8)] },
        ("fcntl", 16) => const { &[one(2, Way::Writes, 8)] },
        // FIONCLEX, FIOCLEX; FIONREAD, TIOCOUTQ, TIOCGPGRP; FIONBIO, FIOASYNC, TIOCSPGRP.
        ("ioctl", 0x5450 | 0x5451) => &[],
        ("ioctl", 0x541b | 0x5411 | 0x540f) => const { &[one(2, Way::Writes, 4)] },
        ("ioctl", 0x5421 | 0x5452 | 0x5410) => const { &[one(2, Way::Reads, 4)] },
        // TCGETS; TCSETS, TCSETSW, TCSETSF; TIOCGWINSZ, TIOCSWINSZ.
        ("ioctl", 0x5401) => const { &[one(2, Way::Writes, 36)] },
        ("ioctl", 0x5402..=0x5404) => const { &[one(2, Way::Reads, 36)] },
        ("ioctl", 0x5413) => const { &[one(2, Way::Writes, 8)] },
        ("ioctl", 0x5414) => const { &[one(2, Way::Reads, 8)] },
        // IPC_RMID; GETPID, GETVAL, GETNCNT, GETZCNT, SETVAL. How many values GETALL and SETALL use only the set says.
        ("semctl" | "msgctl" | "shmctl", 0) | ("semctl", 11 | 12 | 14..=16) => &[],
        // IPC_SET, IPC_STAT.
        ("semctl", 1) => const { &[one(3, Way::Reads, 104)] },
        ("semctl", 2) => const { &[one(3, Way::Writes, 104)] },
        ("msgctl", 1) => const { &[one(2, Way::Reads, 120)] },
        ("msgctl", 2) => const { &[one(2, Way::Writes, 120)] },
        ("shmctl", 1) => const { &[one(2, Way::Reads, 112)] },
        ("shmctl", 2) => const { &[one(2, Way::Writes, 112)] },
        // PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, the slack of timers, PR_SET_CHILD_SUBREAPER, no new privileges.
        ("prctl", 1 | 3 | 4 | 29 | 30 | 36 | 38 | 39) => &[],
        // PR_GET_PDEATHSIG, PR_GET_CHILD_SUBREAPER; PR_SET_NAME, PR_GET_NAME.
        ("prctl", 2 | 37) => const { &[one(1, Way::Writes, 4)] },
        ("prctl", 15) => const { &[Buffer { argument: 1, way: Way::Reads, size: Text }] },
        ("prctl", 16) => const { &[one(1, Way::Writes, 16)] },
        _ => return None,
    })
}

/// Of a call that has commands, the argument that they are in.
fn command_of(name: &str) -> Option<usize> {
    match name {
        "fcntl" | "ioctl" | "msgctl" | "shmctl" => Some(1),
        "semctl" => Some(2),
        "prctl" | "arch_prctl" => Some(0),
        _ => None,
    }
}

/// The memory that call `nr` uses with these arguments; `None`: that is not known.
pub fn buffers(nr: i64, arguments: &[u64; 6]) -> Option<&'static [Buffer]> {
    let nr = usize::try_from(nr).ok()?;
    let (name, _) = CALLS.get(nr)?;
    // Commands are 32 bits long.
    let by_command = || by_command(name, arguments[command_of(name)?] as u32);
    BUFFERS[nr].or_else(by_command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::calls::Fate;

    /// Calls that pass and of which it is not known: how long a handle is (`name_to_handle_at`) is in it.
    const UNKNOWN: [&str; 1] = ["name_to_handle_at"];

    #[test]
    fn the_buffers_of_each_call_are_known() {
        for (nr, (name, fate)) in CALLS.iter().enumerate() {
            let passes = matches!(fate, Fate::Modelled | Fate::Mixed | Fate::Real);
            let known = BUFFERS[nr].is_some() || command_of(name).is_some();
            assert_eq!(passes && !UNKNOWN.contains(name), known, "{name}");
        }
    }

    #[test]
    fn each_argument_is_one_buffer() {
        // What is written elsewhere is found by its argument.
        for (all, (name, _)) in BUFFERS.iter().zip(CALLS) {
            let arguments: std::vec::Vec<_> = all.unwrap_or(&[]).iter().map(|one| one.argument).collect();
            assert!(arguments.iter().enumerate().all(|(n, one)| !arguments[..n].contains(one)), "{name}");
            assert!(arguments.len() <= MAX_BUFFERS, "{name}");
        }
    }

    #[test]
    fn a_command_says_what_is_used() {
        let fcntl = CALLS.iter().position(|call| call.0 == "fcntl").expect("it is there") as i64;
        let lock = buffers(fcntl, &[3, 6, 4096, 0, 0, 0]);
        assert_eq!(lock, Some([Buffer { argument: 2, way: Way::Reads, size: Bytes(32) }].as_slice()));
        assert_eq!(buffers(fcntl, &[3, 1, 1, 0, 0, 0]), Some([].as_slice()));
        assert_eq!(buffers(fcntl, &[3, 12345, 1, 0, 0, 0]), None);
        assert_eq!((buffers(-1, &[0; 6]), buffers(5000, &[0; 6])), (None, None));
    }
}
