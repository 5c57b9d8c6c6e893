//! What system calls do, by number: as the net of the preloaded library models them (`shim/src/net.rs`).

use vsrun_model::{calls, Kind, ObjKind};

use super::names::{Effect, CHANNEL, FILE, FLOCK, MSGQ, NAMES, POLL, RECORDS, SYSV};
use crate::search::allowed::KindClass;

/// The number of the futex call, whose second object depends on its command.
pub const FUTEX: i64 = libc::SYS_futex;

/// What a futex call is about.
pub enum FutexCommand {
    /// The futex of its first argument.
    One,
    /// Also that of its fifth one.
    Two,
    /// Priority inheritance.
    Inherits,
}

/// Sorts the second argument of a futex call.
pub fn futex_command(command: u64) -> FutexCommand {
    const COMMAND: u64 = 127;
    const LOCK_PI2: i32 = 13;
    match (command & COMMAND) as i32 {
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP => FutexCommand::Two,
        libc::FUTEX_LOCK_PI | libc::FUTEX_TRYLOCK_PI | libc::FUTEX_UNLOCK_PI | LOCK_PI2 => FutexCommand::Inherits,
        libc::FUTEX_WAIT_REQUEUE_PI | libc::FUTEX_CMP_REQUEUE_PI => FutexCommand::Inherits,
        _ => FutexCommand::One,
    }
}

/// What system call `number` does; None: not known. Arguments are those of the system call.
pub fn effects(number: i64) -> Option<&'static [Effect]> {
    use Effect::{On, Op};
    Some(match calls::name(number)? {
        "futex" => &[On(ObjKind::FUTEX, 0)],
        "sched_yield" => &[Op(KindClass::Does(Kind::YIELD))],
        "nanosleep" | "clock_nanosleep" => &[Op(KindClass::Does(Kind::SLEEP))],
        "read" | "write" | "close" | "close_range" | "pipe" | "pipe2" | "epoll_create" | "epoll_create1"
        | "epoll_ctl" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "eventfd" | "eventfd2" | "signalfd"
        | "signalfd4" | "timerfd_create" | "timerfd_settime" | "timerfd_gettime" | "poll" | "ppoll" | "select"
        | "pselect6" => &[CHANNEL, FILE, Op(KindClass::Does(Kind::SLEEP)), POLL],
        "wait4" | "waitid" => &[Op(KindClass::Does(Kind::WAIT))],
        "exit" => &[Op(KindClass::Does(Kind::EXIT)), Op(KindClass::Does(Kind::THREAD_EXIT))],
        "exit_group" => &[Op(KindClass::Does(Kind::EXIT))],
        "kill" | "tkill" | "tgkill" => &[Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))],
        "semget" => &[NAMES],
        "semop" | "semtimedop" => &[SYSV, POLL],
        "fcntl" => &[RECORDS, POLL],
        "flock" => &[FLOCK, POLL],
        "msgget" => &[NAMES],
        "msgsnd" | "msgrcv" => &[MSGQ, POLL],
        "msgctl" => &[MSGQ, NAMES],
        "mq_open" | "mq_unlink" => &[NAMES],
        "mq_timedreceive" | "mq_getsetattr" => &[CHANNEL, POLL],
        "mq_timedsend" => &[CHANNEL, POLL, Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))],
        "semctl" => &[SYSV, NAMES],
        "getpid" | "gettid" | "getppid" | "getuid" | "geteuid" | "getgid" | "getegid" | "getcpu" | "getrandom"
        | "clock_gettime" | "gettimeofday" | "time" | "mmap" | "munmap" | "mprotect" | "madvise" | "membarrier"
        | "sched_getaffinity" | "sched_setaffinity" => &[],
        _ => return None,
    })
}
