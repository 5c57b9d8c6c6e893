//! What system calls do, by number: as the net of the preloaded library models them (`shim/src/net.rs`).

use vsrun_model::Kind;
use vsrun_model::ObjKind;

use super::names::Effect;
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
    Some(match number {
        FUTEX => &[On(ObjKind::FUTEX, 0)],
        libc::SYS_sched_yield => &[Op(KindClass::Does(Kind::YIELD))],
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => &[Op(KindClass::Does(Kind::SLEEP))],
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_close
        | libc::SYS_close_range
        | libc::SYS_pipe
        | libc::SYS_pipe2
        | libc::SYS_epoll_create
        | libc::SYS_epoll_create1
        | libc::SYS_epoll_ctl
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_eventfd
        | libc::SYS_eventfd2
        | libc::SYS_signalfd
        | libc::SYS_signalfd4
        | libc::SYS_timerfd_create
        | libc::SYS_timerfd_settime
        | libc::SYS_timerfd_gettime
        | libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_select
        | libc::SYS_pselect6 => &[
            Op(KindClass::On(ObjKind::CHANNEL)),
            Op(KindClass::On(ObjKind::FILE)),
            Op(KindClass::Does(Kind::SLEEP)),
            Op(KindClass::Poll),
        ],
        libc::SYS_wait4 | libc::SYS_waitid => &[Op(KindClass::Does(Kind::WAIT))],
        libc::SYS_exit => &[Op(KindClass::Does(Kind::EXIT)), Op(KindClass::Does(Kind::THREAD_EXIT))],
        libc::SYS_exit_group => &[Op(KindClass::Does(Kind::EXIT))],
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => {
            &[Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))]
        }
        libc::SYS_semget => &[Op(KindClass::On(ObjKind::NAMES))],
        libc::SYS_semop | libc::SYS_semtimedop => &[Op(KindClass::On(ObjKind::SYSV)), Op(KindClass::Poll)],
        libc::SYS_fcntl => &[Op(KindClass::On(ObjKind::RECORDS)), Op(KindClass::Poll)],
        libc::SYS_flock => &[Op(KindClass::On(ObjKind::FLOCK)), Op(KindClass::Poll)],
        libc::SYS_msgget => &[Op(KindClass::On(ObjKind::NAMES))],
        libc::SYS_msgsnd | libc::SYS_msgrcv => &[Op(KindClass::On(ObjKind::MSGQ)), Op(KindClass::Poll)],
        libc::SYS_msgctl => &[Op(KindClass::On(ObjKind::MSGQ)), Op(KindClass::On(ObjKind::NAMES))],
        libc::SYS_mq_open | libc::SYS_mq_unlink => &[Op(KindClass::On(ObjKind::NAMES))],
        libc::SYS_mq_timedreceive | libc::SYS_mq_getsetattr => {
            &[Op(KindClass::On(ObjKind::CHANNEL)), Op(KindClass::Poll)]
        }
        libc::SYS_mq_timedsend => &[
            Op(KindClass::On(ObjKind::CHANNEL)),
            Op(KindClass::Poll),
            Op(KindClass::Does(Kind::KILL)),
            Op(KindClass::Does(Kind::EXIT)),
        ],
        libc::SYS_semctl => &[Op(KindClass::On(ObjKind::SYSV)), Op(KindClass::On(ObjKind::NAMES))],
        _ if is_harmless(number) => &[],
        _ => return None,
    })
}

fn is_harmless(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_getpid
            | libc::SYS_gettid
            | libc::SYS_getppid
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_getcpu
            | libc::SYS_getrandom
            | libc::SYS_clock_gettime
            | libc::SYS_gettimeofday
            | libc::SYS_time
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_madvise
            | libc::SYS_membarrier
            | libc::SYS_sched_getaffinity
            | libc::SYS_sched_setaffinity
    )
}
