//! What functions of libc do to memory of their caller's. libc's own code is not watched: what the other modules call instead tells what
//! a function uses. From the manual pages and glibc's sources (2.36), for x86-64.

use crate::base::buffers::same;

/// Where memory is of which a function is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// Where this argument points, from 0; a null is none.
    Argument(u8),
    /// The same, behind the first word there.
    Behind(u8),
    /// Where the address points to which this argument points once the function is done.
    Pointed(u8),
    /// Where what the function gives points.
    Result,
    /// The same, where that is memory of libc's own, the same for all threads, and all that the function writes there.
    Own,
    /// State of libc's own that nothing guards: it stands for it where the function of this name is.
    State(&'static str),
}

/// How it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It is read, before the function does anything else.
    Reads,
    /// The same, written.
    Sets,
    /// The same, by an atomic update or under a lock of libc's.
    Updates,
    /// It is written by a function that succeeds.
    Writes,
    /// It is read, and written by a function that succeeds.
    Changes,
    /// It has been read when the function is done and has succeeded.
    Finds,
    /// What many functions go by is changed, where the argument is not null: beside other threads that is said, and not explored.
    Hides,
}

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// So many bytes.
    Bytes(u32),
    /// An argument, times so many bytes.
    Of(u8, u32),
    /// An argument times another.
    Product(u8, u8),
    /// A text and the NUL behind it.
    Text,
    /// The NUL behind a text.
    End,
    /// A text, at most as many bytes as an argument says.
    TextUpTo(u8),
    /// A text of wide characters.
    Wide,
    /// As much of a text as a number can be.
    Number,
    /// What the function gives, times so many bytes, and so many more; an argument times as many bytes at most, or [`NO_LIMIT`].
    Given(u8, u32, u32),
    /// What the function gives, times an argument; another argument times that at most.
    GivenTimes(u8, u8),
    /// An address of the family that an argument is.
    Address(u8),
    /// What mmap puts in the place of what is there: the second argument, in pages, if it does that.
    Replaced,
    /// What madvise throws away, or keeps from the children of a fork, likewise,
    Discarded,
    /// what munmap takes away,
    Unmapped,
    /// what mremap may move, take away or add,
    Moved,
    /// what mprotect makes usable or takes from all who use it,
    Opened,
    /// and what it only lets be written, or no more.
    Frozen,
}

/// In the place of an argument: nothing says how much there is at most.
pub const NO_LIMIT: u8 = u8::MAX;

/// A use of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// Where,
    pub at: At,
    /// how,
    pub way: Way,
    /// how much.
    pub size: Size,
}

/// Which results of a function mean that it has done what it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Success {
    /// All.
    Any,
    /// A number that is 0.
    Zero,
    /// A number that is not negative.
    Positive,
    /// One that is not 0.
    NotZero,
}

/// What a function does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    /// To no memory of its caller's anything, or what is seen elsewhere: by its system calls, its operations, the patches of its code.
    Nothing,
    /// This.
    Uses(&'static [Use]),
    /// What depends on what it finds there: functions of texts, and what copies and compares. It is in the shim.
    Special,
    /// It prints, by the format in argument `format`, what its arguments say: those behind `fixed` ones, or those of a `va_list`, which is
    /// that argument.
    Prints {
        /// Which argument is the format.
        format: u8,
        /// Arguments that are always there.
        fixed: u8,
        /// Behind them is a `va_list`.
        list: bool,
        /// To which memory, and which argument says how much there is.
        to: Option<(u8, Option<u8>)>,
        /// It gives the address of new memory to where this argument points.
        gives: Option<u8>,
        /// The function that does the same with a `va_list`; empty where that is not needed.
        by: &'static str,
    },
    /// It reads by a format; as above. `text`: from that argument.
    Scans {
        /// Which argument is the format.
        format: u8,
        /// Behind it is a `va_list`.
        list: bool,
        /// The text.
        text: Option<u8>,
        /// The function that does the same with a `va_list`.
        by: &'static str,
    },
}

/// A function of libc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What its result means.
    pub success: Success,
    /// What it does.
    pub does: Does,
}

/// Most uses of a function.
pub const MAX_USES: usize = 5;

macro_rules! uses {
    ({ $($way:ident $at:expr, $size:expr);* }) => {
        &[$(Use { at: $at, way: Way::$way, size: $size }),*]
    };
}

macro_rules! functions {
    (
        special: $($special:ident)*;
        nothing: $($nothing:ident)*;
        uses: $([$($name:ident)+] $success:ident $uses:tt)*
        other: $([$($other:ident)+] $does:expr;)*
    ) => {
        &[
            $(Function { name: stringify!($special), success: Success::Any, does: Does::Special },)*
            $($(Function {
                name: stringify!($name),
                success: Success::$success,
                does: Does::Uses(uses!($uses)),
            },)+)*
            $($(Function { name: stringify!($other), success: Success::Positive, does: $does },)+)*
            $(Function { name: stringify!($nothing), success: Success::Any, does: Does::Nothing },)*
        ]
    };
}

const A: At = At::Argument(0);
const B: At = At::Argument(1);
const C: At = At::Argument(2);
const D: At = At::Argument(3);
const E: At = At::Argument(4);
const ENVIRONMENT: At = At::State("setenv");
const TOKEN: At = At::State("strtok");
const LOCALE: At = At::State("setlocale");
const RANDOM: At = At::State("srand48");
const LOG: At = At::State("setlogmask");
const BREAK: At = At::State("sbrk");
const LEVEL: At = At::State("pthread_setconcurrency");
const LOADED: At = At::State("dlopen");
/// Where mappings come depends on which there are.
const MAPPINGS: At = At::State("mmap");
const PROTECTION: At = At::State("mprotect");
const KEYS: At = At::State("pthread_key_create");

const INT: Size = Bytes(4);
const LONG: Size = Bytes(8);
const POINTER: Size = Bytes(8);
const STATE: Size = Bytes(8);
const SET: Size = Bytes(8);
const TM: Size = Bytes(56);
const TIME: Size = Bytes(16);
const ACTION: Size = Bytes(152);
/// A stream, behind the word that is read by who is about to lock it, and without its lock.
const FILE: Size = Bytes(208);
const STREAM_A: At = At::Behind(0);
const STREAM_B: At = At::Behind(1);
const STREAM_C: At = At::Behind(2);
const STREAM_D: At = At::Behind(3);
const STREAM_E: At = At::Behind(4);
const INFO: Size = Bytes(128);
const HINTS: Size = Bytes(48);
/// What setjmp keeps: registers, and whether there is a mask, which a system call writes.
const JUMP: Size = Bytes(68);

use Size::{
    Address, Bytes, Discarded, End, Frozen, Given, GivenTimes, Moved, Number, Of, Opened, Product, Replaced, Text,
    TextUpTo, Unmapped, Wide,
};

/// Prints to a stream or a descriptor.
const fn prints(format: u8) -> Does {
    Does::Prints { format, fixed: format + 1, list: false, to: None, gives: None, by: "" }
}

const fn prints_list(format: u8) -> Does {
    Does::Prints { format, fixed: format + 1, list: true, to: None, gives: None, by: "" }
}

/// Prints to memory, of which argument `size` says how much there is.
const fn writes(format: u8, size: Option<u8>, by: &'static str) -> Does {
    Does::Prints { format, fixed: format + 1, list: false, to: Some((0, size)), gives: None, by }
}

const fn writes_list(format: u8, size: Option<u8>) -> Does {
    Does::Prints { format, fixed: format + 1, list: true, to: Some((0, size)), gives: None, by: "" }
}

/// Prints to new memory.
const fn gives(format: u8, list: bool, by: &'static str) -> Does {
    Does::Prints { format, fixed: format + 1, list, to: None, gives: Some(0), by }
}

const fn scans(format: u8, text: Option<u8>, by: &'static str) -> Does {
    Does::Scans { format, list: by.is_empty(), text, by }
}

/// Functions that print to the stream that is their first argument, or scan it.
pub const OF_STREAMS: [usize; 9] = [
    number("fprintf"),
    number("vfprintf"),
    number("__fprintf_chk"),
    number("__vfprintf_chk"),
    number("fscanf"),
    number("vfscanf"),
    number("__isoc99_fscanf"),
    number("__isoc23_fscanf"),
    number("__isoc99_vfscanf"),
];

/// Functions that print, and then end the process by libc's own exit.
pub const THAT_END: [usize; 4] = [number("err"), number("errx"), number("verr"), number("verrx")];
/// It does so unless its first argument is 0.
pub const MAY_END: usize = number("error");

/// How many of the functions are [`Does::Special`]: the first ones.
pub const SPECIAL: usize = {
    let mut n = 0;
    while matches!(FUNCTIONS[n].does, Does::Special) {
        n += 1;
    }
    n
};

/// All of which it is known. Of the others the report says so, once one of them is called beside other threads.
pub const FUNCTIONS: &[Function] = functions! {
    special:
        memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk memset __memset_chk memcmp bcmp memchr memrchr rawmemchr
        strlen strnlen strcpy stpcpy __strcpy_chk __stpcpy_chk strncpy __strncpy_chk stpncpy strcat __strcat_chk strncat __strncat_chk
        strcmp strncmp strcasecmp strncasecmp strchr strchrnul strrchr strstr strspn strcspn strpbrk strcasestr memmem
        index rindex __rawmemchr __stpcpy __mempcpy strsep strtok_r __strtok_r;
    nothing:
        // Threads, locks, semaphores, conditions, barriers: operations on objects.
        pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_mutex_consistent
        pthread_mutex_consistent_np __pthread_mutex_lock __pthread_mutex_trylock __pthread_mutex_unlock
        pthread_cond_destroy pthread_cond_wait pthread_cond_signal pthread_cond_broadcast
        pthread_rwlock_destroy pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_tryrdlock
        pthread_rwlock_trywrlock pthread_rwlock_unlock pthread_barrier_destroy pthread_barrier_wait
        pthread_spin_init pthread_spin_destroy pthread_spin_lock pthread_spin_trylock pthread_spin_unlock
        pthread_once call_once pthread_detach thrd_detach pthread_cancel pthread_testcancel pthread_exit thrd_exit pthread_self
        thrd_current pthread_equal thrd_equal pthread_kill pthread_setspecific pthread_getspecific tss_set tss_get pthread_yield thrd_yield
        pthread_setschedprio mtx_init mtx_destroy mtx_lock mtx_trylock mtx_unlock
        cnd_init cnd_destroy cnd_wait cnd_signal cnd_broadcast sem_init sem_destroy sem_wait sem_trywait sem_post sem_close
        sched_yield __pthread_register_cancel __pthread_unregister_cancel __pthread_unwind_next
        __sched_cpufree __sched_cpualloc sched_getcpu get_nprocs get_nprocs_conf
        // Memory, the loader, the end of the program, the start of it.
        malloc calloc realloc reallocarray aligned_alloc memalign valloc pvalloc free cfree malloc_usable_size malloc_trim
        exit _exit _Exit quick_exit abort atexit __cxa_atexit __cxa_at_quick_exit on_exit __cxa_finalize
        __cxa_thread_atexit_impl __libc_start_main __stack_chk_fail __fdelt_chk __chk_fail __assert_fail __assert __assert_perror_fail
        __errno_location __h_errno_location __res_state _dl_find_object dlerror
        __tls_get_addr _dl_mcount_wrapper_check __gmon_start__ __libc_current_sigrtmin __libc_current_sigrtmax
        gnu_get_libc_version gnu_get_libc_release getauxval __libc_single_threaded
        vfork fork _Fork
        // Numbers and characters.
        abs labs llabs div ldiv lldiv imaxabs imaxdiv isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct
        isspace isupper isxdigit tolower toupper toascii __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __ctype_get_mb_cur_max
        iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit iswctype towlower
        towupper __iswctype_l __towlower_l __towupper_l wcwidth btowc wctob __wctype_l wctype htonl htons ntohl ntohs gnu_dev_major gnu_dev_minor gnu_dev_makedev
        copysign copysignf copysignl finite finitef finitel isinf isinff isinfl isnan isnanf isnanl ldexp ldexpf
        ldexpl scalbn scalbnf scalbnl difftime bsearch strerror strsignal strerrorname_np strerrordesc_np
        sigabbrev_np sigdescr_np gai_strerror hstrerror strerror_l nl_langinfo nl_langinfo_l __nl_langinfo_l rand random srand srandom
        arc4random arc4random_uniform clock getpagesize __getpagesize getdtablesize sysconf __sysconf ffs ffsl ffsll
        // Files, sockets, processes, signals: what their system calls use is seen there.
        open open64 __open_2 __open64_2 openat openat64 __openat_2 __openat64_2 creat creat64 close close_range closefrom read __read_chk write pread
        pread64 __pread_chk __pread64_chk pwrite pwrite64 readv writev preadv preadv64 pwritev pwritev64 preadv2 preadv64v2 pwritev2
        pwritev64v2 lseek lseek64 dup dup2 dup3 pipe pipe2 fcntl fcntl64 ioctl fsync fdatasync sync syncfs sync_file_range
        ftruncate ftruncate64 truncate truncate64 fallocate fallocate64 posix_fallocate posix_fallocate64 posix_fadvise posix_fadvise64
        readahead copy_file_range sendfile sendfile64 splice tee vmsplice stat stat64 lstat lstat64 fstat fstat64 fstatat fstatat64 statx __xstat
        __xstat64 __lxstat __lxstat64 __fxstat __fxstat64 __fxstatat __fxstatat64 statfs statfs64 fstatfs fstatfs64 access faccessat eaccess
        euidaccess chmod fchmod fchmodat lchmod chown fchown lchown fchownat umask mkdir mkdirat rmdir unlink unlinkat remove rename
        renameat renameat2 link linkat symlink symlinkat readlink readlinkat __readlink_chk mkfifo mkfifoat mknod mknodat chdir fchdir
        chroot utimensat futimens flock posix_madvise msync mlock mlock2
        munlock mlockall munlockall memfd_create inotify_init inotify_init1 inotify_add_watch inotify_rm_watch setxattr lsetxattr fsetxattr
        getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr getdents64
        socket socketpair bind listen connect accept accept4 shutdown getsockname getpeername getsockopt setsockopt send sendto sendmsg
        sendmmsg recv recvfrom recvmsg recvmmsg __recv_chk __recvfrom_chk poll __poll_chk ppoll __ppoll_chk epoll_create epoll_create1
        epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd signalfd timerfd_create timerfd_settime timerfd_gettime pidfd_open
        pidfd_getfd pidfd_send_signal getpid getppid getpgrp getpgid setpgid setpgrp getsid setsid gettid getuid geteuid getgid getegid
        setuid seteuid setreuid setresuid setgid setegid setregid setresgid getresuid getresgid setfsuid setfsgid getgroups setgroups
        wait wait3 wait4 waitid waitpid kill killpg raise tgkill pause alarm ualarm sleep usleep nice getpriority setpriority getrlimit getrlimit64
        setrlimit setrlimit64 prlimit prlimit64 getrusage times sysinfo uname getitimer setitimer timer_settime timer_gettime timer_delete
        timer_getoverrun sigaltstack signal sysv_signal __sysv_signal bsd_signal ssignal siginterrupt sigqueue pthread_sigqueue
        execve execv execl execle fexecve prctl syscall personality getrandom
        getentropy arc4random_buf capget capset sched_getaffinity sched_setaffinity sched_setscheduler sched_getscheduler sched_setparam sched_getparam
        sched_get_priority_max sched_get_priority_min sched_rr_get_interval semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
        shmget shmat shmdt shmctl mq_close mq_unlink mq_getattr mq_setattr mq_notify mq_send mq_receive process_vm_readv
        process_vm_writev time clock_gettime gettimeofday ptrace sethostname isatty tcgetpgrp tcsetpgrp tcgetsid tcdrain tcflow tcflush tcsendbreak
        eventfd_write clock_settime clock_getres
        // Streams: their locks are objects, what is in them is theirs alone.
        fcloseall putchar getchar _flushlbf tmpfile tmpfile64 _IO_getc fgetc getc fputc putc _IO_putc ungetc
        // What readdir gives lies in what getdents64 has written.
        opendir fdopendir closedir dirfd readdir readdir64 rewinddir telldir seekdir getlogin freeaddrinfo endpwent setpwent endgrent
        setgrent if_freenameindex freeifaddrs freelocale duplocale uselocale __duplocale __freelocale __uselocale
        tzset;
    uses:
        // Texts.
        [strdup __strdup] NotZero { Reads A, Text; Writes At::Result, Text }
        [strndup __strndup] NotZero { Reads A, TextUpTo(1); Writes At::Result, Text }
        [strcoll strverscmp] Any { Reads A, Text; Reads B, Text }
        [strcoll_l __strcoll_l] Any { Reads A, Text; Reads B, Text }
        [strxfrm strxfrm_l __strxfrm_l] Any { Reads B, Text; Writes A, TextUpTo(2) }
        [atoi atol atoll atof] Any { Reads A, Number }
        [strtol strtoul strtoll strtoull strtoimax strtoumax strtoq strtouq __isoc23_strtol __isoc23_strtoul __isoc23_strtoll
         __isoc23_strtoull strtoll_l strtoull_l strtol_l strtoul_l __strtoull_internal __strtol_internal strtod strtof strtold
         strtod_l strtof_l strtold_l __strtod_l __strtof_l __strtold_l] Any { Reads A, Number; Writes B, POINTER }
        [strtok] NotZero { Reads TOKEN, STATE; Sets TOKEN, STATE; Reads B, Text; Finds At::Result, Text; Writes At::Result, End }
        [bzero explicit_bzero __explicit_bzero_chk] Any { Sets A, Of(1, 1) }
        [bcopy] Any { Reads A, Of(2, 1); Sets B, Of(2, 1) }
        [swab] Any { Reads A, Of(2, 1); Sets B, Of(2, 1) }
        [wcslen] Any { Reads A, Wide }
        [wmemcpy wmemmove __wmemcpy_chk __wmemmove_chk] Any { Reads B, Of(2, 4); Sets A, Of(2, 4) }
        [wmemset __wmemset_chk] Any { Sets A, Of(2, 4) }
        [wmemcmp] Any { Reads A, Of(2, 4); Reads B, Of(2, 4) }
        [wcscmp wcscoll] Any { Reads A, Wide; Reads B, Wide }
        [wcscpy wcpcpy __wcscpy_chk] Any { Reads B, Wide; Writes A, Wide }
        [basename] Any { Reads A, Text }
        [__xpg_basename dirname] Any { Reads A, Text; Writes A, End }
        [strerror_r] Any { Writes At::Result, Text }
        [__xpg_strerror_r] Zero { Writes B, TextUpTo(2) }
        [fnmatch] Any { Reads A, Text; Reads B, Text }
        [gettext textdomain] Any { Reads A, Text }
        [bindtextdomain dgettext dcgettext] Any { Reads A, Text; Reads B, Text }
        // Numbers. Of a `long double` nothing may come between caller and function, since it lies on the stack.
        [modf] Any { Sets A, Bytes(8) }
        [modff frexp frexpf frexpl] Any { Sets A, INT }
        [modfl] Any { Sets A, Bytes(10) }
        // Sorting, random numbers.
        [qsort qsort_r] Any { Reads A, Product(1, 2); Sets A, Product(1, 2) }
        [lfind] Any { Reads C, LONG }
        [rand_r] Any { Changes A, INT }
        [erand48 nrand48 jrand48] Any { Changes A, Bytes(6) }
        [drand48 lrand48 mrand48 srand48] Any { Reads RANDOM, STATE; Sets RANDOM, STATE }
        [seed48] Any { Reads RANDOM, STATE; Sets RANDOM, STATE; Reads A, Bytes(6) }
        // The environment and the locale.
        [getenv secure_getenv __libc_secure_getenv __secure_getenv] Any { Reads ENVIRONMENT, STATE; Reads A, Text }
        [setenv] Any { Updates ENVIRONMENT, STATE; Reads A, Text; Reads B, Text }
        [unsetenv putenv] Any { Updates ENVIRONMENT, STATE; Reads A, Text }
        [clearenv] Any { Updates ENVIRONMENT, STATE }
        [newlocale __newlocale] Any { Reads B, Text }
        [setlocale] Any { Updates LOCALE, STATE; Reads B, Text; Hides B, STATE }
        [localeconv] Any { Reads LOCALE, STATE }
        // Time.
        [timespec_get] NotZero { Writes A, TIME }
        [gmtime localtime __gmtime] NotZero { Reads A, LONG; Writes At::Own, TM }
        [gmtime_r localtime_r __gmtime_r __localtime_r] NotZero { Reads A, LONG; Writes B, TM }
        [mktime timegm timelocal] Any { Changes A, TM }
        [asctime] NotZero { Reads A, TM; Writes At::Own, Text }
        [asctime_r] NotZero { Reads A, TM; Writes B, Text }
        [ctime] NotZero { Reads A, LONG; Writes At::Own, Text }
        [ctime_r] NotZero { Reads A, LONG; Writes B, Text }
        [strftime strftime_l __strftime_l] NotZero { Reads C, Text; Reads D, TM; Writes A, Given(1, 1, 1) }
        [strptime] NotZero { Reads A, Text; Reads B, Text; Changes C, TM }
        [nanosleep clock_nanosleep] Any { }
        // Streams.
        [fflush fclose fileno feof ferror clearerr fseek fseeko fseeko64 ftell ftello ftello64 rewind flockfile ftrylockfile funlockfile _IO_flockfile _IO_ftrylockfile _IO_funlockfile __fpending __fpurge fpurge __fbufsize __freading __fwriting __freadable __fwritable __flbf __fsetlocking pclose] Any { Reads A, INT }
        [fileno_unlocked feof_unlocked ferror_unlocked] Any { Reads A, INT }
        // These are for who has the lock, or is alone.
        [__overflow __uflow __underflow fflush_unlocked clearerr_unlocked fgetc_unlocked getc_unlocked] Any { Sets STREAM_A, FILE }
        [fputc_unlocked putc_unlocked] Any { Sets STREAM_B, FILE }
        [fgets] NotZero { Reads C, INT; Writes A, TextUpTo(1) }
        [fgets_unlocked] NotZero { Sets STREAM_C, FILE; Writes A, TextUpTo(1) }
        [__fgets_chk] NotZero { Reads D, INT; Writes A, TextUpTo(2) }
        [__fgets_unlocked_chk] NotZero { Sets STREAM_D, FILE; Writes A, TextUpTo(2) }
        [fread] NotZero { Reads D, INT; Writes A, GivenTimes(1, 2) }
        [fread_unlocked] NotZero { Sets STREAM_D, FILE; Writes A, GivenTimes(1, 2) }
        [__fread_chk] NotZero { Reads E, INT; Writes A, GivenTimes(2, 3) }
        [__fread_unlocked_chk] NotZero { Sets STREAM_E, FILE; Writes A, GivenTimes(2, 3) }
        [fwrite] Any { Reads D, INT; Reads A, Product(1, 2) }
        [fwrite_unlocked] Any { Sets STREAM_D, FILE; Reads A, Product(1, 2) }
        [fputs] Any { Reads B, INT; Reads A, Text }
        [fputs_unlocked] Any { Sets STREAM_B, FILE; Reads A, Text }
        [puts perror] Any { Reads A, Text }
        [psignal] Any { Reads B, Text }
        [getline] Positive { Reads C, INT; Changes A, POINTER; Changes B, LONG; Writes At::Pointed(0), Given(NO_LIMIT, 1, 1) }
        [getdelim __getdelim] Positive { Reads D, INT; Changes A, POINTER; Changes B, LONG; Writes At::Pointed(0), Given(NO_LIMIT, 1, 1) }
        [fopen fopen64 popen] Any { Reads A, Text; Reads B, Text }
        [freopen freopen64] Any { Reads A, Text; Reads B, Text; Hides C, INT }
        [fdopen] Any { Reads B, Text }
        [fgetpos fgetpos64] Zero { Reads A, INT; Writes B, Bytes(16) }
        [fsetpos fsetpos64] Any { Reads A, INT; Reads B, Bytes(16) }
        [system execvp execvpe execlp] Any { Reads A, Text }
        [openlog closelog] Any { Updates LOG, STATE; Hides LOG, STATE }
        [setlogmask] Any { Updates LOG, STATE }
        // Names of files, of hosts, of users.
        [realpath __realpath_chk] NotZero { Reads A, Text; Writes B, Text; Writes At::Result, Text }
        [canonicalize_file_name get_current_dir_name] NotZero { Writes At::Result, Text }
        [getcwd] NotZero { Writes At::Result, Text }
        [gethostname getdomainname] Zero { Writes A, TextUpTo(1) }
        [ttyname ctermid] NotZero { Writes At::Own, Text }
        [ttyname_r ptsname_r] Zero { Writes B, TextUpTo(2) }
        [mkstemp mkstemp64 mkostemp mkostemp64 mkstemps] Positive { Changes A, Text }
        [mkdtemp] NotZero { Changes A, Text }
        [shm_open shm_unlink sem_open sem_unlink mq_open] Any { Reads A, Text }
        [inet_ntop] NotZero { Reads B, Address(0); Writes C, TextUpTo(3) }
        [inet_pton] NotZero { Reads B, Text; Writes C, Address(0) }
        [inet_aton] NotZero { Reads A, Text; Writes B, INT }
        [inet_addr] Any { Reads A, Text }
        [inet_ntoa] NotZero { Writes At::Result, Text }
        [getaddrinfo] Zero { Reads A, Text; Reads B, Text; Reads C, HINTS; Writes D, POINTER }
        [getpwnam] NotZero { Reads A, Text; Writes At::Result, Bytes(48) }
        [getpwuid] NotZero { Writes At::Result, Bytes(48) }
        [getgrnam] NotZero { Reads A, Text; Writes At::Result, Bytes(32) }
        [getgrgid] NotZero { Writes At::Result, Bytes(32) }
        [if_nametoindex] Any { Reads A, Text }
        [if_indextoname] NotZero { Writes B, Text }
        // Signals and terminals.
        [sigemptyset sigfillset] Any { Sets A, SET }
        [sigaddset sigdelset] Any { Changes A, SET }
        [sigismember sigisemptyset] Any { Reads A, SET }
        [sigaction] Zero { Reads B, ACTION; Writes C, ACTION }
        [sigprocmask pthread_sigmask] Zero { Reads B, SET; Writes C, SET }
        [sigpending] Zero { Writes A, SET }
        [sigsuspend] Any { Reads A, SET }
        [sigwait] Zero { Reads A, SET; Writes B, INT }
        [sigwaitinfo] Positive { Reads A, SET; Writes B, INFO }
        [sigtimedwait] Positive { Reads A, SET; Reads C, TIME; Writes B, INFO }
        [tcgetattr] Zero { Writes B, Bytes(60) }
        [tcsetattr] Any { Reads C, Bytes(60) }
        [select] Positive { Changes B, Bytes(128); Changes C, Bytes(128); Changes D, Bytes(128); Changes E, TIME }
        [pselect] Positive { Changes B, Bytes(128); Changes C, Bytes(128); Changes D, Bytes(128); Reads E, TIME }
        [eventfd_read] Zero { Writes B, LONG }
        [utime] Any { Reads B, Bytes(16) }
        [utimes lutimes] Any { Reads B, Bytes(32) }
        [lockf lockf64] Any { }
        [statvfs statvfs64 fstatvfs fstatvfs64] Zero { Writes B, Bytes(112) }
        [timer_create] Zero { Reads B, Bytes(64); Writes C, POINTER }
        [mq_timedsend] Any { Reads E, TIME }
        [mq_timedreceive] Any { Reads E, TIME }
        // Threads: what they write by themselves, and the times of waits.
        [pthread_mutex_init pthread_cond_init pthread_rwlock_init pthread_barrier_init] Any { Reads B, INT }
        [pthread_create] Any { Sets A, LONG; Reads B, Bytes(56) }
        [thrd_create] Any { Sets A, LONG }
        [pthread_join pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np] Zero { Writes B, POINTER }
        [thrd_join] Zero { Writes B, INT }
        [pthread_key_create __pthread_key_create tss_create] Zero { Updates KEYS, STATE; Writes A, INT }
        [pthread_key_delete tss_delete] Any { Updates KEYS, STATE }
        [pthread_setconcurrency] Any { Sets LEVEL, STATE }
        [pthread_getconcurrency] Any { Reads LEVEL, STATE }
        [pthread_setcancelstate pthread_setcanceltype] Zero { Writes B, INT }
        [pthread_mutex_timedlock] Any { Reads B, TIME }
        [pthread_mutex_clocklock] Any { Reads C, TIME }
        [mtx_timedlock] Any { Reads B, TIME }
        [pthread_cond_timedwait cnd_timedwait] Any { Reads C, TIME }
        [pthread_cond_clockwait] Any { Reads D, TIME }
        [pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock] Any { Reads B, TIME }
        [pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock] Any { Reads C, TIME }
        [sem_timedwait] Any { Reads B, TIME }
        [sem_clockwait] Any { Reads C, TIME }
        [sem_getvalue] Zero { Writes B, INT }
        [pthread_attr_init] Zero { Writes A, Bytes(56) }
        [pthread_attr_destroy pthread_attr_setstacksize pthread_attr_setdetachstate pthread_attr_setguardsize pthread_attr_setscope
         pthread_attr_setinheritsched pthread_attr_setschedpolicy pthread_attr_setstack] Any { Changes A, Bytes(56) }
        [pthread_attr_getstacksize pthread_attr_getguardsize] Zero { Reads A, Bytes(56); Writes B, LONG }
        [pthread_attr_getdetachstate] Zero { Reads A, Bytes(56); Writes B, INT }
        [pthread_attr_getstack] Zero { Reads A, Bytes(56); Writes B, POINTER; Writes C, LONG }
        [pthread_getattr_np] Zero { Writes B, Bytes(56) }
        [pthread_mutexattr_init pthread_condattr_init pthread_rwlockattr_init pthread_barrierattr_init] Any { Sets A, INT }
        [pthread_mutexattr_destroy pthread_condattr_destroy pthread_rwlockattr_destroy pthread_barrierattr_destroy
         pthread_mutexattr_settype pthread_mutexattr_setpshared pthread_mutexattr_setrobust pthread_mutexattr_setprotocol
         pthread_condattr_setclock pthread_condattr_setpshared pthread_rwlockattr_setpshared pthread_rwlockattr_setkind_np
         pthread_barrierattr_setpshared] Any { Changes A, INT }
        [pthread_mutexattr_gettype] Any { Reads A, INT; Writes B, INT }
        [pthread_setname_np] Any { Reads B, Text }
        [pthread_getname_np] Zero { Writes B, TextUpTo(2) }
        [pthread_getschedparam] Zero { Writes B, INT; Writes C, INT }
        [pthread_setschedparam] Any { Reads C, INT }
        [pthread_getcpuclockid] Zero { Writes B, INT }
        [pthread_getaffinity_np] Zero { Writes C, Of(1, 1) }
        [pthread_setaffinity_np] Any { Reads C, Of(1, 1) }
        // Memory, the loader, the stack. What asks who calls it, or where its frame is, has nothing that comes behind it.
        [mmap mmap64] Any { Updates MAPPINGS, STATE; Sets A, Replaced }
        [madvise] Any { Sets A, Discarded }
        [sbrk brk] Any { Updates BREAK, STATE }
        [munmap] Any { Updates MAPPINGS, STATE; Sets A, Unmapped }
        [mremap] Any { Updates MAPPINGS, STATE; Sets A, Moved }
        [mprotect pkey_mprotect] Any { Updates PROTECTION, STATE; Sets A, Opened; Reads A, Frozen }
        // What these tell or change is not followed.
        [mallopt mincore __register_atfork pthread_atfork putchar_unlocked getchar_unlocked] Any { Hides MAPPINGS, STATE }
        [dl_iterate_phdr] Any { Reads LOADED, STATE }
        [posix_memalign] Zero { Writes A, POINTER }
        [dlopen] Any { Updates LOADED, STATE; Reads A, Text }
        [dlclose] Any { Updates LOADED, STATE }
        [dlsym dlvsym] Any { Reads LOADED, STATE; Reads B, Text }
        [dladdr] NotZero { Writes B, Bytes(32) }
        [backtrace] Any { Sets A, Of(1, 8) }
        [backtrace_symbols_fd] Any { Reads A, Of(1, 8) }
        [_setjmp setjmp __sigsetjmp] Any { Sets A, JUMP }
        [longjmp _longjmp siglongjmp __longjmp_chk] Any { Reads A, JUMP }
    other:
        [printf] prints(0);
        [fprintf dprintf syslog] prints(1);
        [__printf_chk] prints(1);
        [__fprintf_chk __dprintf_chk __syslog_chk] prints(2);
        [vprintf] prints_list(0);
        [vfprintf vdprintf vsyslog] prints_list(1);
        [__vprintf_chk] prints_list(1);
        [__vfprintf_chk __vdprintf_chk __vsyslog_chk] prints_list(2);
        [warn warnx] prints(0);
        [err errx] prints(1);
        [error] prints(2);
        [vwarn vwarnx] prints_list(0);
        [verr verrx] prints_list(1);
        [sprintf] writes(1, None, "vsprintf");
        [snprintf] writes(2, Some(1), "vsnprintf");
        [__sprintf_chk] writes(3, None, "__vsprintf_chk");
        [__snprintf_chk] writes(4, Some(1), "__vsnprintf_chk");
        [vsprintf] writes_list(1, None);
        [vsnprintf] writes_list(2, Some(1));
        [__vsprintf_chk] writes_list(3, None);
        [__vsnprintf_chk] writes_list(4, Some(1));
        [asprintf __asprintf] gives(1, false, "vasprintf");
        [__asprintf_chk] gives(2, false, "__vasprintf_chk");
        [vasprintf] gives(1, true, "");
        [__vasprintf_chk] gives(2, true, "");
        [sscanf] scans(1, Some(0), "vsscanf");
        [fscanf] scans(1, None, "vfscanf");
        [scanf] scans(0, None, "vscanf");
        [__isoc99_sscanf] scans(1, Some(0), "__isoc99_vsscanf");
        [__isoc99_fscanf] scans(1, None, "__isoc99_vfscanf");
        [__isoc99_scanf] scans(0, None, "__isoc99_vscanf");
        [__isoc23_sscanf] scans(1, Some(0), "__isoc23_vsscanf");
        [__isoc23_fscanf] scans(1, None, "__isoc23_vfscanf");
        [__isoc23_scanf] scans(0, None, "__isoc23_vscanf");
        [vsscanf __isoc99_vsscanf __isoc23_vsscanf] scans(1, Some(0), "");
        [vfscanf __isoc99_vfscanf __isoc23_vfscanf] scans(1, None, "");
        [vscanf __isoc99_vscanf __isoc23_vscanf] scans(0, None, "");
};

/// Most functions of which nothing is known that are told apart: more than there are in libc (1,600 of glibc 2.36, each version counted).
/// Where there are more the tool says that some are not watched.
pub const OTHERS: usize = 3072;
/// Bytes of the name of one of those.
pub const NAME: usize = 56;
/// Bytes from one stand-in to the next.
pub const STRIDE: u64 = 16;

/// The number of the function of that name; [`FUNCTIONS`]' length: there is none.
pub const fn number(name: &str) -> usize {
    let mut n = 0;
    while n < FUNCTIONS.len() && !same(FUNCTIONS[n].name, name) {
        n += 1;
    }
    n
}

/// Of each function that prints or scans with arguments of its own, the number of that which does so with a `va_list`.
pub static BY_LIST: [u16; FUNCTIONS.len()] = {
    let mut all = [u16::MAX; FUNCTIONS.len()];
    let mut n = 0;
    while n < all.len() {
        if let Does::Prints { by, .. } | Does::Scans { by, .. } = FUNCTIONS[n].does {
            if !by.is_empty() {
                all[n] = number(by) as u16;
            }
        }
        n += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_there_once() {
        for (n, function) in FUNCTIONS.iter().enumerate() {
            assert_eq!(number(function.name), n, "{} is there twice", function.name);
            assert!(function.name.len() < NAME);
        }
        assert!(FUNCTIONS[..SPECIAL].iter().all(|f| f.does == Does::Special));
        assert!(FUNCTIONS[SPECIAL..].iter().all(|f| f.does != Does::Special));
    }

    #[test]
    fn what_they_name_is_there() {
        for function in FUNCTIONS {
            match function.does {
                Does::Uses(uses) => {
                    assert!(uses.len() <= MAX_USES, "{}", function.name);
                    for one in uses {
                        if let At::State(name) = one.at {
                            assert!(number(name) < FUNCTIONS.len(), "{name}");
                        }
                    }
                }
                Does::Prints { by, .. } | Does::Scans { by, .. } if !by.is_empty() => {
                    let there = number(by);
                    assert!(there < FUNCTIONS.len(), "{by}");
                    assert!(matches!(
                        FUNCTIONS[there].does,
                        Does::Prints { list: true, .. } | Does::Scans { list: true, .. }
                    ));
                }
                _ => {}
            }
        }
    }
}
