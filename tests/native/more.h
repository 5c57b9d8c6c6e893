/* Operations of the driver about what outlives a call: what a process leaves when it ends, what its children are given, what several
 * have by a name. Included by driver.c. */

/* ---- what is left ---- */

/* Descriptions of files that are a strand's own; what it forks shares them. */
static __thread int own[N];
OP(do_ownopen) {
    UNUSED;
    char name[16], path[PATH_MAX];
    if (own[a]) return -601;
    snprintf(name, sizeof name, "/file%ld", a);
    int fd = open(in_place(path, name), O_RDWR | (b ? O_CLOEXEC : 0));
    if (fd < 0) return -errno;
    own[a] = fd;
    return 0;
}
OP(do_ownclose) { UNUSED; long e = own[a] ? error(close(own[a])) : -600; own[a] = 0; return e; }
OP(do_ownflock) {
    UNUSED;
    static const int HOW[] = { LOCK_SH, LOCK_EX, LOCK_UN, LOCK_SH | LOCK_NB, LOCK_EX | LOCK_NB };
    return own[a] ? error(flock(own[a], HOW[b])) : -600;
}
static long own_record(int command, int file, int type) {
    struct flock lock = { .l_type = type == 0 ? F_RDLCK : type == 1 ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_len = 4 };
    return own[file] ? error(fcntl(own[file], command, &lock)) : -600;
}
OP(do_owntry) { UNUSED; return own_record(F_OFD_SETLK, a, b); }
OP(do_ownwait) { UNUSED; return own_record(F_OFD_SETLKW, a, b); }

/* The robust mutex. Who has it knows. */
static __thread int has_robust;
static long robust(int error) {
    if (error == 0 || error == EOWNERDEAD) has_robust = 1;
    return -error;
}
OP(do_rlock) { UNUSED; return has_robust ? -601 : robust(pthread_mutex_lock(&w->mutex[3])); }
OP(do_rtry) { UNUSED; return has_robust ? -601 : robust(pthread_mutex_trylock(&w->mutex[3])); }
OP(do_rmend) { UNUSED; return has_robust ? minus(pthread_mutex_consistent(&w->mutex[3])) : -600; }
OP(do_rgive) { UNUSED; if (!has_robust) return -600; has_robust = 0; return minus(pthread_mutex_unlock(&w->mutex[3])); }

/* Is this thread there? Only who has created it, and has not joined it, may ask. */
OP(do_asks) {
    UNUSED;
    struct sched_param param;
    int policy;
    clockid_t clock;
    char name[16];
    if (known[a] != getpid() || w->creator[a] != self || w->started[a] != 1 || w->joined[a]) return -600;
    pthread_t thread = w->thread[a];
    if (b == 0) return minus(pthread_kill(thread, 0));
    if (b == 1) return minus(pthread_getschedparam(thread, &policy, &param));
    if (b == 2) return minus(pthread_getcpuclockid(thread, &clock));
    return pthread_getname_np(thread, name, sizeof name) != 0;
}
/* Joins a thread of its own, once. */
OP(do_joins) {
    UNUSED;
    if (known[a] != getpid() || w->creator[a] != self || w->started[a] != 1 || w->joined[a]) return -600;
    int error = pthread_join(w->thread[a], NULL);
    w->joined[a] = !error;
    return -error;
}

/* ---- what a child is given ---- */

/* What a process sees of itself, below 64. */
static int sight(int what, int fd) {
    struct sigaction act;
    sigset_t set;
    struct rlimit limit;
    char path[PATH_MAX];
    struct stat s;
    int flags;
    switch (what) {
    case 0: return (flags = fcntl(fd, F_GETFD)) < 0 ? 0 : 1 + flags;
    case 1: sigaction(SIGUSR1, NULL, &act); return act.sa_handler == SIG_DFL ? 0 : act.sa_handler == SIG_IGN ? 1 : 2;
    case 2: pthread_sigmask(SIG_SETMASK, NULL, &set); return sigismember(&set, SIGUSR1);
    case 3: flags = umask(0); umask(flags); return flags & 63;
    case 4: return getcwd(path, sizeof path) ? !strcmp(path + strlen(path) - 4, "/sub") : 3;
    case 5: return getrlimit(RLIMIT_CORE, &limit) ? 60 : (int)limit.rlim_cur & 63;
    case 6: return fstat(fd, &s) ? 0 : S_ISFIFO(s.st_mode) ? 1 : 2;
    default: return write(fd, "s", 1) == 1 ? 1 : errno & 63;
    }
}
/* What a child sees that is made now (`a`: of what, `b`: an end of a pipe), or the program that this executes. */
static long seen_by(int what, int which, int executes) {
    int fd = pipes[which / 2][which % 2], status;
    pid_t child = fork();
    if (child == 0) {
        char text[16], number[16];
        if (!executes) _exit(sight(what, fd));
        snprintf(text, sizeof text, "%d", what), snprintf(number, sizeof number, "%d", fd);
        execl(own_path, own_path, "--then", text, number, "sight", (char *)NULL);
        _exit(99);
    }
    if (child < 0) return -errno;
    pid_t waited;
    while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
    return waited < 0 ? -errno : WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}
OP(do_child) { UNUSED; return seen_by(a, b, 0); }
OP(do_executed) { UNUSED; return seen_by(a, b, 1); }
OP(do_sees) { UNUSED; return sight(a, pipes[b / 2][b % 2]); }
OP(do_nocloexec) { UNUSED; return error(fcntl(pipes[a][b], F_SETFD, 0)); }

/* ---- stops ---- */
static long waits(pid_t pid, int how) {
    int status = 0;
    if (!pid) return -600;
    pid = waitpid(pid, &status, (how & 1 ? WUNTRACED : 0) | (how & 2 ? WCONTINUED : 0) | (how & 4 ? WNOHANG : 0));
    return waited(pid, status);
}
OP(do_waits) { UNUSED; return waits(known[a], b); }
OP(do_waitsany) { UNUSED; return waits(-1, a); }
OP(do_waitid) {
    UNUSED;
    siginfo_t info = { 0 };
    long result = error(waitid(P_ALL, 0, &info, WSTOPPED | WCONTINUED | WEXITED | WNOWAIT | (a ? WNOHANG : 0)));
    note("%s,%d,%d,", who(info.si_pid), info.si_pid ? info.si_code : 0, info.si_pid ? info.si_status : 0);
    return result;
}
OP(do_stopself) { UNUSED; return error(kill(getpid(), a ? SIGTSTP : SIGSTOP)); }

/* ---- memory by a name ---- */

/* What several have in a page of memory, which each strand may have elsewhere. */
struct page { pthread_mutex_t mutex; pthread_cond_t cond; sem_t sem; };
enum { NAMED, SEGMENT, UNNAMED, OF_FILE, PAGES };
static struct page *first_seen[PAGES];
static __thread struct page *page;
static __thread int page_held, page_kind;
static __thread int object, object_kind;
static char memory_name[2][64];

static void make_page(struct page *p) {
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex), pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_t cond;
    pthread_condattr_init(&cond), pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&p->mutex, &mutex), pthread_cond_init(&p->cond, &cond), sem_init(&p->sem, 1, 0);
}
static struct page *mapped(int fd) {
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    return at == MAP_FAILED ? NULL : at;
}
static int page_file(int flags) { char path[PATH_MAX]; return open(in_place(path, "/page"), O_RDWR | flags, 0600); }

/* Objects of memory: 0 has a page in it, and is only mapped; 1 is made, written and cut as strands like. */
OP(do_objopen) {
    UNUSED;
    if (object) return -601;
    int fd = shm_open(memory_name[a], O_RDWR | (b == 1 ? O_CREAT : b == 2 ? O_CREAT | O_EXCL : b == 3 ? O_CREAT | O_TRUNC : 0), 0600);
    if (fd < 0) return -errno;
    object = fd, object_kind = a;
    return 0;
}
OP(do_objcut) { UNUSED; return object && object_kind == 1 ? error(ftruncate(object, a * 4096)) : -600; }
OP(do_objsize) { UNUSED; struct stat s; return !object ? -600 : fstat(object, &s) ? -errno : (long)s.st_size / 4096; }
OP(do_objlinks) { UNUSED; struct stat s; return !object ? -600 : fstat(object, &s) ? -errno : (long)s.st_nlink; }
OP(do_objclose) { UNUSED; long e = object ? error(close(object)) : -600; object = 0; return e; }
OP(do_objunlink) { UNUSED; return error(shm_unlink(memory_name[a])); }
OP(do_objput) { UNUSED; char x = 'a' + self; return object && object_kind == 1 ? error(pwrite(object, &x, 1, a)) : -600; }
OP(do_objget) { UNUSED; char x = 0; long n = object && object_kind == 1 ? error(pread(object, &x, 1, a)) : -600; return n > 0 ? x : n; }

/* A page of a kind, by whatever name it has. */
OP(do_pagein) {
    UNUSED;
    struct stat s;
    void *at = NULL;
    if (page) return -601;
    if (a == UNNAMED) at = first_seen[a];
    else if (a == SEGMENT) { at = shmat(shmid, NULL, 0); if (at == (void *)-1) return -errno; }
    else {
        int fd = a == NAMED ? shm_open(memory_name[0], O_RDWR, 0) : page_file(0);
        if (fd < 0) return -errno;
        // Made again by another strand, and empty.
        at = fstat(fd, &s) || s.st_size < 4096 ? NULL : mapped(fd);
        close(fd);
    }
    if (!at) return -602;
    page = at, page_kind = a;
    return 0;
}
OP(do_pageout) {
    UNUSED;
    if (!page || page_held) return -600;
    long e = page_kind == UNNAMED ? 0 : page_kind == SEGMENT ? error(shmdt(page)) : error(munmap(page, 4096));
    page = NULL;
    return e;
}
OP(do_pglock) { UNUSED; if (!page || page_held) return -600; page_held = 1; return minus(pthread_mutex_lock(&page->mutex)); }
OP(do_pgtry) { UNUSED; if (!page || page_held) return -600; long e = minus(pthread_mutex_trylock(&page->mutex)); page_held = !e; return e; }
OP(do_pgunlock) { UNUSED; if (!page || !page_held) return -600; page_held = 0; return minus(pthread_mutex_unlock(&page->mutex)); }
OP(do_pgcwait) { UNUSED; return page && page_held ? minus(pthread_cond_wait(&page->cond, &page->mutex)) : -600; }
OP(do_pgctimed) { UNUSED; return page && page_held ? minus(pthread_cond_timedwait(&page->cond, &page->mutex, SOON)) : -600; }
OP(do_pgsignal) { UNUSED; return page ? minus(pthread_cond_signal(&page->cond)) : -600; }
OP(do_pgpost) { UNUSED; return page ? error(sem_post(&page->sem)) : -600; }
OP(do_pgwait) { UNUSED; return page ? error(sem_wait(&page->sem)) : -600; }
OP(do_pgtrywait) { UNUSED; return page ? error(sem_trywait(&page->sem)) : -600; }
OP(do_pgvalue) { UNUSED; int v = 0; if (!page) return -600; sem_getvalue(&page->sem, &v); return v; }

/* ---- FIFOs ---- */
static __thread int ends_of[N][2];
static char *fifo(char *path, int which) { char name[16]; snprintf(name, sizeof name, "/fifo%d", which); return in_place(path, name); }
OP(do_ffmake) { UNUSED; char path[PATH_MAX]; return error(mkfifo(fifo(path, a), 0600)); }
/* For reading (0), writing (1), the same without waiting (2, 3), both (4, as one for writing). */
OP(do_ffopen) {
    UNUSED;
    static const int HOW[] = { O_RDONLY, O_WRONLY, O_RDONLY | O_NONBLOCK, O_WRONLY | O_NONBLOCK, O_RDWR | O_NONBLOCK };
    char path[PATH_MAX];
    int end = b == 4 ? 1 : b % 2;
    if (ends_of[a][end]) return -601;
    int fd = open(fifo(path, a), HOW[b]);
    if (fd < 0) return -errno;
    ends_of[a][end] = fd;
    return 0;
}
OP(do_ffclose) { UNUSED; int fd = ends_of[a][b]; ends_of[a][b] = 0; return fd ? error(close(fd)) : -600; }
OP(do_ffread) { UNUSED; char x[8]; return ends_of[a][0] ? error(read(ends_of[a][0], x, b ? b : 1)) : -600; }
OP(do_ffwrite) { UNUSED; char x[4096] = { 0 }; return ends_of[a][1] ? error(write(ends_of[a][1], x, b ? b : 1)) : -600; }
OP(do_ffpoll) {
    UNUSED;
    struct pollfd fd = { ends_of[a][b], b ? POLLOUT : POLLIN, 0 };
    if (!fd.fd) return -600;
    long result = error(poll(&fd, 1, c == 2 ? -1 : c));
    note("%x,", fd.revents);
    return result;
}
OP(do_ffunlink) { UNUSED; char path[PATH_MAX]; return error(unlink(fifo(path, a))); }
OP(do_ffhas) { UNUSED; char path[PATH_MAX]; struct stat s; return error(stat(fifo(path, a), &s)) ? -errno : S_ISFIFO(s.st_mode); }
