//! Functions of libc and of the run-time libraries of C and C++ that do nothing visible.
//!
//! NOTE [Descriptors] Calls on files, pipes and sockets are here too; those that are visible where others use the same are named
//! before (`names.rs`, [`uses_files`]). Stdio is not: where its file is shared, an operation shows as one outside its bound.
//!
//! Not here, though they look harmless: setuid and its like, which send a signal to every thread; flockfile, which keeps
//! a lock; what uses name services (getpwnam, getaddrinfo), which load libraries.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A set of names, written as a text of words.
pub(super) type Names = LazyLock<BTreeSet<&'static str>>;

/// The words of `text`.
pub(super) fn words<T: FromIterator<&'static str>>(text: &'static str) -> T {
    text.split_whitespace().collect()
}

/// Neither block nor take a lock. Variables are here too: their addresses lie in slots like functions'.
static PURE: Names = Names::new(|| {
    words(
        "
    _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __assert __assert_fail __assert_perror_fail __ctype_b_loc
    __ctype_get_mb_cur_max __ctype_tolower_loc __ctype_toupper_loc __cxa_bad_cast __cxa_bad_typeid __cxa_begin_catch
    __cxa_current_exception_type __cxa_finalize __cxa_get_exception_ptr __cxa_get_globals __cxa_get_globals_fast
    __cxa_pure_virtual __cxa_uncaught_exceptions __dynamic_cast __environ __errno_location __explicit_bzero_chk
    __gcc_personality_v0 __gmon_start__ __gxx_personality_v0 __isoc23_strtoimax __isoc23_strtol __isoc23_strtoll
    __isoc23_strtoul __isoc23_strtoull __isoc23_strtoumax __libc_start_main __longjmp_chk __memcpy_chk __memmove_chk
    __mempcpy_chk __memset_chk __progname __pthread_getspecific __pthread_register_cancel __pthread_setspecific
    __pthread_unregister_cancel __pthread_unwind_next __sigsetjmp __stack_chk_fail __stack_chk_guard __stpcpy_chk
    __stpncpy_chk __strcat_chk __strcpy_chk __strlcat_chk __strlcpy_chk __strncat_chk __strncpy_chk __strtod_internal
    __strtok_r __strtol_internal __strtoul_internal __tls_get_addr __xpg_basename _longjmp _pthread_cleanup_pop
    _setjmp a64l abort abs atof atoi atol atoll basename bcmp bcopy btowc bzero clock clock_getres clock_gettime
    cnd_init crypt_r daylight difftime dirname div drand48 environ erand48 explicit_bzero ffs ffsl ffsll get_nprocs
    get_nprocs_conf getauxval getcontext getegid getentropy geteuid getgid getpagesize getpgid getpgrp getpid getppid
    getrandom getsid gettid gettimeofday getuid gmtime_r hcreate_r hdestroy_r hsearch_r htonl htons imaxabs imaxdiv
    in6addr_any in6addr_loopback index inet_addr inet_aton inet_ntoa inet_ntop inet_pton insque isalnum isalpha
    isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper iswalnum iswalpha iswctype
    iswdigit iswlower iswprint iswpunct iswspace iswupper isxdigit jrand48 l64a labs ldiv llabs lldiv longjmp lrand48
    memccpy memchr memcmp memcpy memmem memmove mempcpy memrchr memset mrand48 mtx_init nrand48 ntohl ntohs optarg
    opterr optind optopt program_invocation_name program_invocation_short_name pthread_attr_destroy
    pthread_attr_getdetachstate pthread_attr_getguardsize pthread_attr_getstack pthread_attr_getstacksize
    pthread_attr_init pthread_attr_setdetachstate pthread_attr_setguardsize pthread_attr_setstack
    pthread_attr_setstacksize pthread_barrier_init pthread_barrierattr_destroy pthread_barrierattr_init
    pthread_barrierattr_setpshared pthread_cond_init pthread_condattr_destroy pthread_condattr_getclock
    pthread_condattr_getpshared pthread_condattr_init pthread_condattr_setclock pthread_condattr_setpshared
    pthread_detach pthread_equal pthread_exit pthread_getaffinity_np pthread_getattr_np pthread_getname_np
    pthread_getspecific pthread_key_delete pthread_mutex_consistent pthread_mutex_consistent_np pthread_mutex_init
    pthread_mutexattr_destroy pthread_mutexattr_getpshared pthread_mutexattr_getrobust pthread_mutexattr_gettype
    pthread_mutexattr_init pthread_mutexattr_setpshared pthread_mutexattr_setrobust pthread_mutexattr_setrobust_np
    pthread_mutexattr_settype pthread_rwlock_init pthread_rwlockattr_destroy pthread_rwlockattr_getkind_np
    pthread_rwlockattr_init pthread_rwlockattr_setkind_np pthread_rwlockattr_setpshared pthread_self
    pthread_setcancelstate pthread_setcanceltype pthread_setname_np pthread_setspecific pthread_sigmask
    pthread_spin_destroy pthread_spin_init pthread_testcancel rand_r rawmemchr remque rindex sched_getaffinity
    sched_getcpu sched_setaffinity seed48 sem_close sem_init setjmp setpgid setsid sigaddset sigandset sigdelset
    sigemptyset sigfillset sigisemptyset sigismember siglongjmp sigorset sigpending sigprocmask srand48 stderr stdin
    stdout stpcpy stpncpy strcasecmp strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strlcat strlcpy
    strlen strncasecmp strncat strncmp strncpy strnlen strpbrk strrchr strsep strspn strstr strtod strtof strtoimax
    strtok strtok_r strtol strtold strtoll strtoul strtoull strtoumax strverscmp strxfrm swab sys_siglist sysconf
    thrd_current thrd_detach thrd_equal thrd_exit time timegm times timezone toascii tolower toupper towlower towupper
    tss_delete tss_get tss_set tzname umask uname vsrun_assert_fail vsrun_disown
    vsrun_hand_over vsrun_own vsrun_progress wcscat wcschr wcscmp wcscoll wcscpy wcscspn wcslen
    wcsncat wcsncmp wcsncpy wcsnlen wcspbrk wcsrchr wcsspn wcsstr wcstod wcstol wcstoll wcstoul wcstoull wcswidth
    wcsxfrm wctob wctype wcwidth wmemchr wmemcmp wmemcpy wmemmove wmemset
        ",
    )
});

/// May take a lock of libc's own for a moment, or make a system call that is not visible.
static LOCKING: Names = Names::new(|| {
    words(
        "
    _IO_getc _IO_putc _Unwind_DeleteException _Unwind_GetCFA _Unwind_GetIP _Unwind_GetLanguageSpecificData
    _Unwind_GetRegionStart _Unwind_Resume __asprintf_chk __cxa_allocate_dependent_exception __cxa_allocate_exception
    __cxa_call_unexpected __cxa_demangle __cxa_end_catch __cxa_free_dependent_exception __cxa_free_exception
    __cxa_rethrow __cxa_throw_bad_array_new_length __dprintf_chk __duplocale __fgets_chk __fpending __fprintf_chk
    __fread_chk __fread_unlocked_chk __freading __freelocale __fsetlocking __fwriting __fxstat __fxstat64 __getcwd_chk
    __getdelim __isoc23_fscanf __isoc23_scanf __isoc23_sscanf __isoc23_vsscanf __isoc99_fscanf __isoc99_scanf
    __isoc99_sscanf __isoc99_vfscanf __isoc99_vsscanf __lxstat __lxstat64 __mbstowcs_chk __newlocale __nl_langinfo_l
    __open64_2 __open_2 __openat_2 __overflow __pread64_chk __pread_chk __printf_chk __read_chk __readlink_chk
    __realpath_chk __recv_chk __recvfrom_chk __sched_cpualloc __sched_cpucount __sched_cpufree __snprintf_chk
    __sprintf_chk __strdup __strftime_l __strndup __swprintf_chk __uflow __uselocale __vasprintf_chk __vdprintf_chk
    __vfprintf_chk __vprintf_chk __vsnprintf_chk __vsprintf_chk __xpg_strerror_r __xstat __xstat64 accept accept4
    access aligned_alloc alphasort asctime asctime_r asprintf backtrace backtrace_symbols backtrace_symbols_fd bind
    bind_textdomain_codeset bindtextdomain brk calloc canonicalize_file_name cfree chdir chmod chown chroot clearenv
    clearerr clearerr_unlocked close close_range closedir closefrom connect copy_file_range creat creat64 ctime
    ctime_r dcgettext dcngettext dgettext dirfd dngettext dprintf dup dup2 dup3 duplocale epoll_create epoll_create1
    epoll_ctl epoll_pwait epoll_wait euidaccess eventfd eventfd_read eventfd_write faccessat fallocate fchdir fchmod
    fchmodat fchown fchownat fclose fdatasync fdopen fdopendir feof feof_unlocked ferror ferror_unlocked fflush
    fflush_unlocked fgetc fgetc_unlocked fgetpos fgets fgets_unlocked fgetwc fgetws fileno fileno_unlocked fmemopen
    fnmatch fopen fopen64 fprintf fputc fputc_unlocked fputs fputs_unlocked fputwc fputws fread fread_unlocked free
    freelocale freopen freopen64 fscanf fseek fseeko fseeko64 fsetpos fstat fstat64 fstatat fstatat64 fstatfs fstatvfs
    fsync ftell ftello ftello64 ftok ftruncate ftruncate64 futimens futimes fwide fwprintf fwrite fwrite_unlocked
    gai_strerror get_current_dir_name getc getc_unlocked getchar getchar_unlocked getcwd getdelim getdomainname
    getdtablesize getenv getgroups gethostname getline getloadavg getlogin getlogin_r getopt getopt_long
    getopt_long_only getpass getpeername getpriority getrlimit getrlimit64 getrusage getsockname getsockopt gettext
    getwc globfree gmtime iconv iconv_close iconv_open initstate initstate_r inotify_add_watch inotify_init
    inotify_init1 inotify_rm_watch ioctl isatty lchown link linkat listen localeconv localtime localtime_r lseek
    lseek64 lstat lstat64 madvise mallinfo mallinfo2 malloc malloc_trim malloc_usable_size mallopt mblen mbrlen
    mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstowcs mbtowc memalign memfd_create mincore mkdir mkdirat mkdtemp mkfifo
    mknod mkostemp mkostemp64 mkstemp mkstemp64 mktime mlock mlockall mmap mmap64 mprotect mremap msync munlock
    munlockall munmap newlocale ngettext nice nl_langinfo nl_langinfo_l obstack_printf obstack_vprintf open open64
    open_memstream openat openat64 opendir perror personality pipe pipe2 posix_fadvise posix_fadvise64 posix_fallocate
    posix_madvise posix_memalign posix_spawn_file_actions_addclose posix_spawn_file_actions_adddup2
    posix_spawn_file_actions_addopen posix_spawn_file_actions_destroy posix_spawn_file_actions_init
    posix_spawnattr_destroy posix_spawnattr_init posix_spawnattr_setflags posix_spawnattr_setpgroup
    posix_spawnattr_setsigdefault posix_spawnattr_setsigmask prctl pread pread64 preadv printf prlimit prlimit64 putc
    putc_unlocked putchar putchar_unlocked putenv puts putwc putwchar pvalloc pwrite pwrite64 pwritev rand random
    random_r read readdir readdir64 readdir_r readlink readlinkat readv realloc reallocarray realpath recv recvfrom
    recvmmsg recvmsg regcomp regerror regexec regfree remove rename renameat renameat2 rewind rewinddir rmdir sbrk
    scanf sched_get_priority_max sched_get_priority_min sched_getparam sched_getscheduler sched_rr_get_interval
    secure_getenv seekdir send sendfile sendfile64 sendmmsg sendmsg sendto setbuf setbuffer setenv setgroups
    sethostname setlinebuf setlocale setpriority setrlimit setrlimit64 setsockopt setstate setvbuf shm_open shm_unlink
    shmat shmctl shmdt shmget shutdown sigaltstack siginterrupt signalfd snprintf sockatmark socket socketpair splice
    sprintf srand srandom srandom_r sscanf stat stat64 statfs statvfs statx strdup strerror strerror_l strerror_r
    strftime strftime_l strndup strptime strsignal swprintf symlink symlinkat sync sysinfo tcgetattr tcgetpgrp
    tcsetattr tcsetpgrp telldir tempnam textdomain timerfd_create timerfd_gettime timerfd_settime tmpfile tmpfile64
    tmpnam truncate truncate64 ttyname ttyname_r tzset ungetc ungetwc unlink unlinkat unsetenv uselocale utime
    utimensat utimes valloc vasprintf vdprintf versionsort vfprintf vfscanf vfwprintf vprintf vscanf vsnprintf
    vsprintf vsscanf vswprintf vwarn vwarnx warn warnx wcrtomb wcsdup wcsnrtombs wcsrtombs wcstombs wctomb wordfree
    wprintf write writev
        ",
    )
});

/// Beginnings of names of the C++ library that do nothing visible: memory, strings, streams, locales, exceptions, type
/// information, containers; then exceptions with their constructors and destructors, functions of namespace std.
static CXX: LazyLock<Vec<&str>> = LazyLock::new(|| {
    words(
        "
    _ZNKSt _ZNSt10filesystem _ZNSaI _ZNKSaI _Znw _Zna _Zdl _Zda _ZTV _ZTI _ZTS _ZTT _ZNSs _ZNKSs _ZNSo _ZNSi _ZNSd
    _ZNSt7__cxx11 _ZNSt8ios_base _ZNSt9basic_ios _ZNSt13basic_ _ZNSt14basic_ _ZNSt15basic_ _ZNSt6locale
    _ZNSt6chrono3_V2 _ZNSt15__exception_ptr

    _ZSt4 _ZSt5flush _ZStls _ZStrs _ZStpl _ZSt16__ostream_insert _ZSt7getline _ZSt11_Hash_bytes _ZSt18_Rb_tree_
    _ZNSt8__detail15_List_node_base _ZNSt8__detail20_Prime_rehash_policy _ZNSt9exception _ZNSt11logic_error
    _ZNSt13runtime_error _ZNSt12system_error _ZNSt12future_error _ZNSt12out_of_range _ZNSt16invalid_argument
    _ZNSt12length_error _ZNSt12domain_error _ZNSt11range_error _ZNSt9bad_alloc _ZNSt8bad_cast _ZNSt17bad_function_call
    _ZNSt12__basic_file _ZNSt13__future_base _ZNSt6thread6_StateD _ZNSt6thread20hardware_concurrency
        ",
    )
});

/// Single names of the C++ library; those of futures and of once controls are variables of a thread or tables.
static CXX_NAMES: Names = Names::new(|| {
    words(
        "
    _ZSt11__once_call _ZSt15__once_callable _ZSt15future_categoryv _ZSt15get_new_handlerv _ZSt17current_exceptionv
    _ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE _ZSt18uncaught_exceptionv _ZSt19uncaught_exceptionsv
    _ZSt3cin _ZSt7nothrow _ZNSt3_V215system_categoryEv _ZNSt3_V216generic_categoryEv _ZNSt18condition_variableC1Ev
    _ZNSt18condition_variableC2Ev
        ",
    )
});

/// Work on files or their names, without the suffix `64`.
static FILES: Names = Names::new(|| {
    words(
        "
    __fxstat __lxstat __xstat __fxstatat __open_2 __open64_2 __openat_2 __openat64_2 __pread_chk __pread64_chk
    __readlink_chk __readlinkat_chk __realpath_chk access canonicalize_file_name chdir chmod chown copy_file_range
    creat eaccess euidaccess faccessat fallocate fchmod fchmodat fchown fchownat fremovexattr fsetxattr fstat fstatat
    ftruncate futimens futimes futimesat getdents getxattr lchown lgetxattr link linkat listxattr llistxattr
    lremovexattr lseek lsetxattr lstat lutimes mkdir mkdirat mkdtemp mkfifo mkfifoat mknod mknodat mkostemp mkstemp
    open openat opendir posix_fallocate pread preadv preadv2 pwrite pwritev pwritev2 readdir readdir_r readlink
    readlinkat realpath remove removexattr rename renameat renameat2 rmdir setxattr stat statfs statvfs statx symlink
    symlinkat tmpfile truncate unlink unlinkat utime utimensat utimes
        ",
    )
});

/// Whether `name` neither does anything visible nor takes a lock.
pub fn is_pure(name: &str) -> bool {
    PURE.contains(name)
}

/// Whether `name` uses files or their names: a visible operation where others use them too.
pub fn uses_files(name: &str) -> bool {
    let name = name.strip_suffix("64").unwrap_or(name);
    FILES.contains(name)
}

/// Whether `name` does nothing visible, but may take a lock of libc's own.
pub fn may_lock(name: &str) -> bool {
    LOCKING.contains(name)
}

/// Whether `name` is a function or variable of the C++ library that does nothing visible.
pub fn is_cxx(name: &str) -> bool {
    let throws = name.starts_with("_ZSt") && name.contains("__throw_");
    throws || CXX.iter().any(|part| name.starts_with(part)) || CXX_NAMES.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_disjoint() {
        assert!(PURE.iter().all(|name| !may_lock(name)));
        assert!(is_pure("strlen") && may_lock("printf") && is_cxx("_Znwm") && !is_cxx("_ZN3foo3barEv"));
    }
}
