//! What functions of libc, libstdc++ and the like do, by name, and system calls, by number: which visible operations, and which
//! functions of the program they call. The interposed ones are those of the preloaded library (`shim/src/interpose`); the
//! others make the system calls, as its net models them (`shim/src/net.rs`).

use vsrun_model::{calls, Kind, ObjKind};
use Effect::{Calls, CallsAny, Locks, On, Op, Registers, RegistersAny, Starts, StartsBody, SystemCall};

use super::harmless::{self, words, Names};
use crate::search::allowed::KindClass;

/// One thing that a call does. Numbers are those of arguments, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A visible operation on the object at the address in this argument.
    On(ObjKind, usize),
    /// A visible operation on some object or on none.
    Op(KindClass),
    /// Calls the function in this argument.
    Calls(usize),
    /// Starts a thread with the function in this argument.
    Starts(usize),
    /// Starts a thread with a function of the program that is found at run time: that of a `std::thread`.
    StartsBody,
    /// The function in this argument will be called later, by any thread: at exit, at the end of a thread.
    Registers(usize),
    /// Functions that were handed over in memory will be called, by any thread: signal handlers.
    RegistersAny,
    /// Calls some function of the program whose address was taken.
    CallsAny,
    /// A system call: number and arguments are arguments.
    SystemCall,
    /// May take a lock of libc's own, as malloc and stdio do.
    Locks,
}

const NOTHING: &[Effect] = &[];
pub(super) const NAMES: Effect = Op(KindClass::On(ObjKind::NAMES));
pub(super) const SYSV: Effect = Op(KindClass::On(ObjKind::SYSV));
pub(super) const MSGQ: Effect = Op(KindClass::On(ObjKind::MSGQ));
pub(super) const CHANNEL: Effect = Op(KindClass::On(ObjKind::CHANNEL));
pub(super) const RECORDS: Effect = Op(KindClass::On(ObjKind::RECORDS));
pub(super) const FLOCK: Effect = Op(KindClass::On(ObjKind::FLOCK));
pub(super) const FILE: Effect = Op(KindClass::On(ObjKind::FILE));
pub(super) const DESCRIPTOR: Effect = Op(KindClass::On(ObjKind::DESCRIPTOR));
const LIBC: Effect = Op(KindClass::On(ObjKind::LIBC));
const PATHS: Effect = Op(KindClass::On(ObjKind::PATHS));
pub(super) const POLL: Effect = Op(KindClass::Poll);
const JOIN: &[Effect] = &[Op(KindClass::Does(Kind::JOIN))];
const WAIT: &[Effect] = &[Op(KindClass::Does(Kind::WAIT))];
const SLEEP: &[Effect] = &[Op(KindClass::Does(Kind::SLEEP)), Locks];
const YIELD: &[Effect] = &[Op(KindClass::Does(Kind::YIELD))];
const EXIT: &[Effect] = &[Op(KindClass::Does(Kind::EXIT)), Locks];
/// The same after the exit handlers.
const EXIT_IN_ORDER: &[Effect] = &[Op(KindClass::Does(Kind::EXIT)), LIBC, Locks];
const FORK: &[Effect] = &[Op(KindClass::Does(Kind::FORK)), Locks];
/// A signal to oneself may end the process.
const KILL: &[Effect] = &[Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))];

/// What a call of the external function `name` does; None: not known.
pub fn effects(name: &str) -> Option<&'static [Effect]> {
    if STATE.contains(name) {
        return Some(&[PATHS, POLL, Locks]);
    }
    if matches!(name, "setpgid" | "setpgrp" | "setsid") {
        return Some(&[PATHS, Op(KindClass::Does(Kind::GROUP_CHANGE))]);
    }
    if matches!(name, "fchdir" | "getsockopt" | "listen" | "setsockopt") {
        return Some(&[CHANNEL, FILE, DESCRIPTOR, PATHS, Op(KindClass::Does(Kind::SLEEP)), POLL, Locks]);
    }
    if DESCRIPTORS.contains(name) {
        // poll without descriptors is a sleep.
        return Some(&[CHANNEL, FILE, DESCRIPTOR, Op(KindClass::Does(Kind::SLEEP)), POLL, Locks]);
    }
    if name == "bind" {
        // Makes a name too.
        return Some(&[CHANNEL, FILE, DESCRIPTOR, PATHS, Op(KindClass::Does(Kind::SLEEP)), POLL, Locks]);
    }
    if harmless::uses_files(name) {
        return Some(&[FILE, PATHS, DESCRIPTOR, POLL, Locks]);
    }
    if matches!(name, "rand" | "random" | "srand" | "srandom" | "initstate" | "setstate") {
        return Some(&[LIBC, Locks]);
    }
    if harmless::is_pure(name) {
        return Some(NOTHING);
    }
    if harmless::may_lock(name) {
        return Some(&[Locks]);
    }
    objects(name).or_else(|| threads(name)).or_else(|| callbacks(name)).or_else(|| cxx(name))
}

/// Functions that may work on pipes, sockets and files. That stdio does so too, where a standard stream is a pipe, is left out:
/// otherwise everything that prints would be bounded by nothing; such an operation shows as one outside its bound.
static DESCRIPTORS: Names = Names::new(|| {
    words(
        "
    __poll_chk __read_chk __recv_chk __recvfrom_chk accept accept4 close close_range closefrom connect dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd_read eventfd_write fcntl
    fcntl64 getpeername getsockname getsockopt ioctl listen lockf lockf64 pipe pipe2 poll ppoll pselect read readv
    recv recvfrom recvmmsg recvmsg select send sendfile sendfile64 sendmmsg sendmsg sendto setsockopt shutdown
    signalfd socket socketpair splice tee timerfd_create timerfd_gettime timerfd_settime vmsplice write writev
        ",
    )
});

/// Functions that read or write what threads and processes share beside objects and files: the table of `shim/src/calls/files/cells.rs`. What
/// only carries it on (fork, pthread_create, exec, the end) is left out: such an operation shows as one outside its bound.
static STATE: Names = Names::new(|| {
    words(
        "
    __getcwd_chk __sched_getscheduler get_current_dir_name getcwd getegid geteuid getgid getgroups getpgid getpgrp
    getpriority getresgid getresuid getrlimit getrlimit64 getsid getuid getwd nice prctl prlimit prlimit64
    pthread_getaffinity_np pthread_getname_np pthread_getschedparam pthread_setaffinity_np pthread_setname_np
    pthread_setschedparam pthread_setschedprio sched_getaffinity sched_getparam sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler setpriority setrlimit setrlimit64 shmat
    shmctl shmdt shmget umask
        ",
    )
});

/// Whether what a call of `name` does depends on its arguments.
pub fn uses_arguments(name: &str) -> bool {
    let matters = |e: &Effect| matches!(e, On(..) | Calls(_) | Starts(_) | Registers(_) | SystemCall);
    effects(name).is_some_and(|effects| effects.iter().any(matters))
}

fn objects(name: &str) -> Option<&'static [Effect]> {
    const MUTEX: &[Effect] = &[On(ObjKind::MUTEX, 0)];
    const COND: &[Effect] = &[On(ObjKind::COND, 0)];
    const COND_WAIT: &[Effect] = &[On(ObjKind::COND, 0), On(ObjKind::MUTEX, 1)];
    const RWLOCK: &[Effect] = &[On(ObjKind::RWLOCK, 0)];
    const SPIN: &[Effect] = &[On(ObjKind::SPIN, 0)];
    const BARRIER: &[Effect] = &[On(ObjKind::BARRIER, 0)];
    const SEM: &[Effect] = &[On(ObjKind::SEM, 0)];
    const TRY_MUTEX: &[Effect] = &[On(ObjKind::MUTEX, 0), POLL];
    const TRY_RWLOCK: &[Effect] = &[On(ObjKind::RWLOCK, 0), POLL];
    const TRY_SPIN: &[Effect] = &[On(ObjKind::SPIN, 0), POLL];
    const TRY_SEM: &[Effect] = &[On(ObjKind::SEM, 0), POLL];
    Some(match name {
        "pthread_mutex_lock"
        | "pthread_mutex_timedlock"
        | "pthread_mutex_clocklock"
        | "pthread_mutex_unlock"
        | "pthread_mutex_destroy"
        | "__pthread_mutex_lock"
        | "__pthread_mutex_unlock"
        | "mtx_lock"
        | "mtx_timedlock"
        | "mtx_unlock"
        | "mtx_destroy" => MUTEX,
        "pthread_mutex_trylock" | "__pthread_mutex_trylock" | "mtx_trylock" => TRY_MUTEX,
        "pthread_cond_wait" | "pthread_cond_timedwait" | "pthread_cond_clockwait" | "cnd_wait" | "cnd_timedwait" => {
            COND_WAIT
        }
        "pthread_cond_signal"
        | "pthread_cond_broadcast"
        | "pthread_cond_destroy"
        | "cnd_signal"
        | "cnd_broadcast"
        | "cnd_destroy" => COND,
        "pthread_rwlock_rdlock"
        | "pthread_rwlock_timedrdlock"
        | "pthread_rwlock_clockrdlock"
        | "pthread_rwlock_wrlock"
        | "pthread_rwlock_timedwrlock"
        | "pthread_rwlock_clockwrlock"
        | "pthread_rwlock_unlock"
        | "pthread_rwlock_destroy" => RWLOCK,
        "pthread_rwlock_tryrdlock" | "pthread_rwlock_trywrlock" => TRY_RWLOCK,
        "pthread_spin_lock" | "pthread_spin_unlock" => SPIN,
        "pthread_spin_trylock" => TRY_SPIN,
        "pthread_barrier_wait" | "pthread_barrier_destroy" => BARRIER,
        "sem_wait" | "sem_timedwait" | "sem_clockwait" | "sem_post" | "sem_getvalue" | "sem_destroy" => SEM,
        "sem_trywait" => TRY_SEM,
        "semget" => &[NAMES, PATHS],
        "sem_open" | "sem_unlink" | "msgget" => &[NAMES],
        // Flags in memory say whether it waits.
        "semop" | "semtimedop" => &[SYSV, POLL],
        // The same.
        "msgsnd" | "msgrcv" => &[MSGQ, POLL],
        "msgctl" => &[MSGQ, NAMES],
        "mq_open" | "__mq_open_2" | "mq_unlink" => &[NAMES, DESCRIPTOR],
        "mq_receive" | "mq_timedreceive" | "mq_getattr" | "mq_setattr" | "mq_close" => &[CHANNEL, DESCRIPTOR, POLL],
        // Somebody may have asked for a signal.
        "mq_send" | "mq_timedsend" => {
            &[CHANNEL, DESCRIPTOR, POLL, Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))]
        }
        // Most commands are about something else; which it is, is not looked at.
        "fcntl" | "fcntl64" => &[RECORDS, DESCRIPTOR, PATHS, POLL],
        "lockf" | "lockf64" => &[RECORDS, DESCRIPTOR, POLL],
        "flock" => &[FLOCK, DESCRIPTOR, POLL],
        // Removing a set frees its name.
        "semctl" => &[SYSV, NAMES],
        "pthread_once" | "call_once" => &[On(ObjKind::ONCE, 0), Calls(1)],
        _ => return None,
    })
}

fn threads(name: &str) -> Option<&'static [Effect]> {
    Some(match name {
        "pthread_create" => &[Op(KindClass::Create), Starts(2), Locks],
        "thrd_create" => &[Op(KindClass::Create), Starts(1), Locks],
        "pthread_join" | "thrd_join" => JOIN,
        "pthread_tryjoin_np" => &[Op(KindClass::TryJoin), POLL],
        "pthread_timedjoin_np" | "pthread_clockjoin_np" => &[Op(KindClass::TryJoin)],
        // The request is an operation; where the thread can be interrupted anywhere, libc sends it a signal too.
        "pthread_cancel" => &[Op(KindClass::Does(Kind::CANCEL)), Op(KindClass::Does(Kind::KILL))],
        "wait" | "waitpid" | "wait3" | "wait4" | "waitid" => WAIT,
        "fork" | "vfork" | "__fork" => FORK,
        "_exit" | "_Exit" => EXIT,
        "exit" | "quick_exit" | "err" | "errx" | "verr" | "verrx" | "error" | "error_at_line" => EXIT_IN_ORDER,
        "kill" | "killpg" | "raise" | "pthread_kill" | "pthread_sigqueue" | "sigqueue" | "tgkill" => KILL,
        "sched_yield" | "pthread_yield" | "thrd_yield" => YIELD,
        "sleep" | "usleep" | "nanosleep" | "clock_nanosleep" | "thrd_sleep" => SLEEP,
        "vsrun_toss" => &[Op(KindClass::Does(Kind::TOSS))],
        "syscall" => &[SystemCall],
        _ => return None,
    })
}

fn callbacks(name: &str) -> Option<&'static [Effect]> {
    Some(match name {
        "qsort" | "qsort_r" => &[Calls(3), Locks],
        "bsearch" => &[Calls(4)],
        "lfind" | "lsearch" => &[Calls(4)],
        "tsearch" | "tfind" | "tdelete" => &[Calls(2), Locks],
        "twalk" | "twalk_r" | "tdestroy" => &[Calls(1), Locks],
        "ftw" | "nftw" => &[Calls(1), Locks],
        "scandir" => &[Calls(2), Calls(3), Locks],
        "dl_iterate_phdr" => &[Calls(0), Locks],
        "_Unwind_Backtrace" => &[Calls(0), Locks],
        "atexit" | "on_exit" | "at_quick_exit" | "__cxa_atexit" | "__cxa_at_quick_exit" => &[LIBC, Registers(0), Locks],
        "__cxa_thread_atexit" | "__cxa_thread_atexit_impl" => &[Registers(0), Locks],
        "pthread_key_create" | "__pthread_key_create" | "tss_create" => &[Registers(1)],
        "pthread_atfork" | "__register_atfork" => &[Registers(0), Registers(1), Registers(2), Locks],
        "_pthread_cleanup_push" => &[Registers(1)],
        "signal" | "bsd_signal" | "sysv_signal" | "__sysv_signal" | "sigset" => &[PATHS, Registers(1)],
        "sigaction" | "__sigaction" => &[PATHS, RegistersAny],
        // They read what the program has put into tables.
        "argp_parse" | "glob" | "glob64" => &[CallsAny, Locks],
        _ => return None,
    })
}

/// The run-time library of C++. What else it exports is stream, string and locale code, which calls back only into
/// classes that derive from its own (see [`derives`]).
fn cxx(name: &str) -> Option<&'static [Effect]> {
    Some(match name {
        "_ZNSt18condition_variable10notify_oneEv"
        | "_ZNSt18condition_variable10notify_allEv"
        | "_ZNSt18condition_variableD1Ev"
        | "_ZNSt18condition_variableD2Ev" => &[On(ObjKind::COND, 0)],
        // The lock is in an object that the second argument points to.
        "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE" => {
            &[On(ObjKind::COND, 0), Op(KindClass::On(ObjKind::MUTEX))]
        }
        "_ZNSt6thread4joinEv" => JOIN,
        "_ZNSt6thread6detachEv" => NOTHING,
        _ if name.starts_with("_ZNSt6thread15_M_start_thread") => &[Op(KindClass::Create), StartsBody, Locks],
        _ if name.starts_with("_ZNSt11this_thread11__sleep_for") => SLEEP,
        _ if name.starts_with("_ZNSt28__atomic_futex_unsigned_base") => &[On(ObjKind::FUTEX, 1)],
        "__cxa_guard_acquire" | "__cxa_guard_release" | "__cxa_guard_abort" => {
            &[On(ObjKind::ONCE, 0), On(ObjKind::FUTEX, 0), Locks]
        }
        // Whoever lets go of an exception last destroys it.
        "__cxa_throw" | "__cxa_init_primary_exception" => &[Registers(2), Locks],
        "_ZSt13set_terminatePFvvE" | "_ZSt15set_new_handlerPFvvE" => &[Registers(0)],
        // Calls what a variable of the thread points to.
        "__once_proxy" => &[CallsAny],
        "_ZSt9terminatev" => &[Locks],
        _ if harmless::is_cxx(name) => &[Locks],
        _ => return None,
    })
}

/// Names that a program imports when classes of its own take the place of those of the library's streams.
pub fn derives(name: &str) -> bool {
    name.starts_with("_ZTISt15basic_streambuf")
        || name.starts_with("_ZTINSt6locale5facet")
        || name.starts_with("_ZNSt15basic_streambufIcSt11char_traitsIcEE9showmanyc")
        || name.starts_with("_ZNSt15basic_streambufIcSt11char_traitsIcEE5uflow")
        || name.starts_with("_ZTINSt3pmr15memory_resource")
        || name.starts_with("_ZTINSt3_V214error_category")
}

/// Functions that do not come back, beside those that throw.
static NEVER_RETURN: Names = Names::new(|| {
    words(
        "
    abort exit _exit _Exit quick_exit __stack_chk_fail __assert_fail __assert __assert_perror_fail __fortify_fail
    __chk_fail longjmp _longjmp siglongjmp __longjmp_chk pthread_exit thrd_exit __pthread_unwind_next __cxa_throw
    __cxa_rethrow __cxa_pure_virtual __cxa_throw_bad_array_new_length __cxa_bad_cast __cxa_bad_typeid
    __cxa_call_unexpected _Unwind_Resume _ZSt9terminatev err errx verr verrx
        ",
    )
});

/// Whether it is a function that does not come back.
pub fn never_returns(name: &str) -> bool {
    NEVER_RETURN.contains(name)
        || name.starts_with("_ZSt20__throw_")
        || name.starts_with("_ZSt1") && name.contains("__throw_")
        || name.starts_with("_ZSt2") && name.contains("__throw_")
}

/// Whether a thread of a program that imports these may wait for a lock of libc's own: somebody may stop at a visible
/// operation while holding one.
pub fn holds_libc_locks(imports: impl Fn(&str) -> bool) -> bool {
    let forks = ["fork", "__fork"].into_iter().any(&imports);
    let threads = imports("pthread_create") || imports("thrd_create") || imports(START_THREAD);
    let flocks = ["flockfile", "ftrylockfile"].into_iter().any(&imports);
    forks && threads || handles_signals(&imports) || flocks
}

/// Whether a program that imports these may have signal handlers.
pub fn handles_signals(imports: impl Fn(&str) -> bool) -> bool {
    ["sigaction", "signal", "__sigaction", "bsd_signal", "__sysv_signal", "sigset"].into_iter().any(imports)
}

/// `std::thread::_M_start_thread`.
pub const START_THREAD: &str = "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE";
/// The type information of `std::thread::_State`, from which the bodies of threads derive.
pub const THREAD_STATE: &str = "_ZTINSt6thread6_StateE";

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
pub fn of_system_call(number: i64) -> Option<&'static [Effect]> {
    Some(match calls::name(number)? {
        "futex" => &[On(ObjKind::FUTEX, 0)],
        "sched_yield" => &[Op(KindClass::Does(Kind::YIELD))],
        "nanosleep" | "clock_nanosleep" => &[Op(KindClass::Does(Kind::SLEEP))],
        "read" | "write" | "close" | "close_range" | "pipe" | "pipe2" | "epoll_create" | "epoll_create1"
        | "epoll_ctl" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "eventfd" | "eventfd2" | "signalfd"
        | "signalfd4" | "timerfd_create" | "timerfd_settime" | "timerfd_gettime" | "poll" | "ppoll" | "select"
        | "pselect6" => &[CHANNEL, FILE, DESCRIPTOR, Op(KindClass::Does(Kind::SLEEP)), POLL],
        "wait4" | "waitid" => &[Op(KindClass::Does(Kind::WAIT))],
        "exit" => &[Op(KindClass::Does(Kind::EXIT)), Op(KindClass::Does(Kind::THREAD_EXIT))],
        "exit_group" => &[Op(KindClass::Does(Kind::EXIT))],
        "kill" | "tkill" | "tgkill" => &[Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))],
        "semget" => &[NAMES, PATHS],
        "semop" | "semtimedop" => &[SYSV, POLL],
        "fcntl" => &[RECORDS, DESCRIPTOR, PATHS, POLL],
        "flock" => &[FLOCK, DESCRIPTOR, POLL],
        "msgget" => &[NAMES],
        "msgsnd" | "msgrcv" => &[MSGQ, POLL],
        "msgctl" => &[MSGQ, NAMES],
        "mq_open" | "mq_unlink" => &[NAMES, DESCRIPTOR],
        "mq_timedreceive" | "mq_getsetattr" => &[CHANNEL, DESCRIPTOR, POLL],
        "mq_timedsend" => {
            &[CHANNEL, DESCRIPTOR, POLL, Op(KindClass::Does(Kind::KILL)), Op(KindClass::Does(Kind::EXIT))]
        }
        "semctl" => &[SYSV, NAMES],
        "getuid" | "geteuid" | "getgid" | "getegid" | "sched_getaffinity" | "sched_setaffinity" | "umask"
        | "getcwd" => &[PATHS, POLL],
        "getpid" | "gettid" | "getppid" | "getcpu" | "getrandom" | "clock_gettime" | "gettimeofday" | "time"
        | "mmap" | "munmap" | "mprotect" | "madvise" | "membarrier" => &[],
        _ => return None,
    })
}
