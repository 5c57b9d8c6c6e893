/* Runs a small concurrent program that is given as text, and prints its outcome: what each call gave, and at the end what can be
 * read of every object. Natively it runs it many times, with delays; under vsrun once per execution.
 *
 *   driver [--outcome FILE] PROGRAM         one run; its outcome is a line on stdout, or appended to FILE
 *   driver --own PROGRAM                    one run of a program of one process, in memory of its own
 *   driver --native RUNS SEED PROGRAM       many runs; prints "COUNT OUTCOME" for each that came
 *
 * PROGRAM: strands, separated by '|'; the first is the first thread. Operations are separated by blanks: a name and up to three
 * numbers, separated by dots: `lock0`, `cwait0.1`; with `?` in front it is done only if the one before gave 0. `thread1` starts strand 1 as a thread, `fork1` as a process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STRANDS = 6, OPS = 48, N = 4, LOG = 512 };

struct op {
    const struct row *row;
    long a, b, c;
    int if_done;
};

/* The program. */
static struct strand {
    int n;
    struct op ops[OPS];
} program[STRANDS];
static int strands;

/* What all processes of a run share. */
struct world {
    char log[STRANDS][LOG];
    _Atomic int used[STRANDS];
    _Atomic int pid[STRANDS], ended[STRANDS];
    /* What a thread starts with. */
    pid_t known[STRANDS][STRANDS];
    pthread_t thread[STRANDS];
    _Atomic int started[STRANDS], joined[STRANDS], creator[STRANDS];
    pthread_mutex_t mutex[N];
    pthread_cond_t cond[N];
    pthread_rwlock_t rw[N];
    pthread_spinlock_t spin[N];
    pthread_barrier_t barrier[N];
    sem_t sem[N];
    int word[N];
    volatile long cell[N];
    char outcome[STRANDS * LOG + 1024];
};
static struct world *w;

/* Sets and queues of the kernel that a native run has made, and leaves when it is killed. */
static struct { int set, queue, segment; } *made;

static pthread_once_t once[N];
static int pipes[N][2], sockets[N][2], events[N], files[N], nameless[2], epolls[N], timers[N];
static FILE *streams[N];
static int stream_pipe[2];
static char *stream_text;
static size_t stream_size;
#define STREAMS "flockfile", "ftrylockfile", "putc", "fflush", "getc", "ftell", "flushall"
static int semid, msgid, shmid;
static char place[PATH_MAX];
#define STATE "made", "cd", "cwd", "there", "ln", "unln", "nlink"
static mqd_t queue;

static __thread int self;
static int is_native;
static const char *outcome;
static int own_memory;
static __thread uint64_t random_state;

/* The processes of the strands that this one has started, or that were there when it was started, itself among them. What others
   write to memory meanwhile is in no order that vsrun could see. */
static __thread pid_t known[STRANDS];

static uint64_t draw(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return random_state;
}

/* Something between two operations that a scheduler might do. */
static int mood;
static void delay(void) {
    if (!is_native) return;
    int kind = draw() % 16;
    if (mood == 0) return;
    if (mood == 1 && kind > 3) kind = 3;
    struct timespec t = { 0, 0 };
    switch (kind) {
    case 0 ... 4: return;
    case 5 ... 7: sched_yield(); return;
    case 8 ... 10: for (volatile long i = draw() % 40000; i > 0; i--) {} return;
    case 11 ... 13: t.tv_nsec = draw() % 300000; break;
    default: t.tv_nsec = 800000 + draw() % 2500000;
    }
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

static void note(const char *format, ...) {
    char text[64];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    // A handler may come in between.
    if (w->used[self] + n + 1 >= LOG) return;
    int at = atomic_fetch_add(&w->used[self], n);
    memcpy(w->log[self] + at, text, n);
}

/* Which strand has this process or thread id. */
static const char *who(long pid) {
    static __thread char text[16];
    if (pid == 0) return "none";
    for (int i = 0; i < strands; i++) {
        if (w->pid[i] == pid) {
            snprintf(text, sizeof text, "P%d", i);
            return text;
        }
    }
    return "other";
}

static long error(long result) { return result < 0 ? -errno : result; }
static long minus(int error) { return -error; }

/* The process of this strand, and the strand that it is about to fork: a handler may run there before that knows who it is. */
static __thread pid_t owner;
static __thread int to_be;

static void handler(int sig) {
    int saved = errno, known_as = self;
    if (owner && getpid() != owner) self = to_be;
    note("!%d ", sig);
    self = known_as;
    errno = saved;
}

/* A millisecond from now. */
static struct timespec soon_on(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += 1000000;
    if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
    return t;
}
#define SOON (&(struct timespec[1]){ soon_on(CLOCK_REALTIME) }[0])
static const struct timespec MILLI = { 0, 1000000 };

static void run(int k);

static void *body(void *arg) {
    self = (intptr_t)arg;
    memcpy(known, w->known[self], sizeof known);
    random_state = mood * 77 + self * 1234567 + random_state + 99;
    run(self);
    return (void *)(intptr_t)(100 + self);
}

/* ---- the operations ---- */
#define OP(name) static long name(long a, long b, long c)
#define UNUSED (void)a, (void)b, (void)c

static uint64_t seed_of_run;
OP(do_thread) {
    UNUSED;
    w->creator[a] = self;
    w->started[a] = 1;
    w->pid[a] = known[a] = getpid();
    memcpy(w->known[a], known, sizeof known);
    return minus(pthread_create(&w->thread[a], NULL, body, (void *)(intptr_t)a));
}
OP(do_fork) {
    UNUSED;
    w->creator[a] = self;
    owner = getpid(), to_be = a;
    pid_t pid = fork();
    if (pid == 0) {
        self = a;
        owner = getpid();
        w->pid[a] = known[a] = getpid();
        random_state = seed_of_run + a * 7654321;
        run(a);
        _exit(10 + a);
    }
    if (pid < 0) return -errno;
    w->pid[a] = known[a] = pid;
    w->started[a] = 2;
    return 0;
}
OP(do_join) {
    UNUSED;
    if (w->joined[a]) return 0;
    void *result;
    int error = pthread_join(w->thread[a], &result);
    if (!error) w->joined[a] = 1;
    return error ? -error : (long)result;
}
OP(do_tryjoin) {
    UNUSED;
    if (w->joined[a]) return 0;
    if (known[a] != getpid()) return -600;
    void *result;
    int error = pthread_tryjoin_np(w->thread[a], &result);
    if (!error) w->joined[a] = 1;
    return error ? -error : (long)result;
}
OP(do_timedjoin) {
    UNUSED;
    if (w->joined[a]) return 0;
    void *result;
    int error = pthread_timedjoin_np(w->thread[a], &result, SOON);
    if (!error) w->joined[a] = 1;
    return error ? -error : (long)result;
}
OP(do_cancel) { UNUSED; return known[a] == getpid() ? minus(pthread_cancel(w->thread[a])) : -600; }
OP(do_tkill) { UNUSED; return known[a] == getpid() ? minus(pthread_kill(w->thread[a], b)) : -600; }
OP(do_texit) { UNUSED; pthread_exit((void *)(intptr_t)a); }
OP(do_testcancel) { UNUSED; pthread_testcancel(); return 0; }
OP(do_yield) { UNUSED; return sched_yield(); }
OP(do_sleep) { UNUSED; return error(nanosleep(&MILLI, NULL)); }

OP(do_lock) { UNUSED; return minus(pthread_mutex_lock(&w->mutex[a])); }
OP(do_trylock) { UNUSED; return minus(pthread_mutex_trylock(&w->mutex[a])); }
OP(do_timedlock) { UNUSED; return minus(pthread_mutex_timedlock(&w->mutex[a], SOON)); }
OP(do_unlock) { UNUSED; return minus(pthread_mutex_unlock(&w->mutex[a])); }
OP(do_consistent) { UNUSED; return minus(pthread_mutex_consistent(&w->mutex[a])); }
static void unlock(void *mutex) { pthread_mutex_unlock(mutex); }
OP(do_cwait) {
    UNUSED;
    int result;
    pthread_cleanup_push(unlock, &w->mutex[b]);
    result = minus(pthread_cond_wait(&w->cond[a], &w->mutex[b]));
    pthread_cleanup_pop(0);
    return result;
}
OP(do_ctimed) {
    UNUSED;
    int result;
    pthread_cleanup_push(unlock, &w->mutex[b]);
    result = minus(pthread_cond_timedwait(&w->cond[a], &w->mutex[b], SOON));
    pthread_cleanup_pop(0);
    return result;
}
OP(do_csignal) { UNUSED; return minus(pthread_cond_signal(&w->cond[a])); }
OP(do_cbroadcast) { UNUSED; return minus(pthread_cond_broadcast(&w->cond[a])); }

OP(do_post) { UNUSED; return error(sem_post(&w->sem[a])); }
OP(do_wait) { UNUSED; return error(sem_wait(&w->sem[a])); }
OP(do_trywait) { UNUSED; return error(sem_trywait(&w->sem[a])); }
OP(do_timedwait) { UNUSED; return error(sem_timedwait(&w->sem[a], SOON)); }
OP(do_getvalue) { UNUSED; int v; sem_getvalue(&w->sem[a], &v); return v; }

OP(do_rd) { UNUSED; return minus(pthread_rwlock_rdlock(&w->rw[a])); }
OP(do_wr) { UNUSED; return minus(pthread_rwlock_wrlock(&w->rw[a])); }
OP(do_tryrd) { UNUSED; return minus(pthread_rwlock_tryrdlock(&w->rw[a])); }
OP(do_trywr) { UNUSED; return minus(pthread_rwlock_trywrlock(&w->rw[a])); }
OP(do_timedrd) { UNUSED; return minus(pthread_rwlock_timedrdlock(&w->rw[a], SOON)); }
OP(do_timedwr) { UNUSED; return minus(pthread_rwlock_timedwrlock(&w->rw[a], SOON)); }
OP(do_rwunlock) { UNUSED; return minus(pthread_rwlock_unlock(&w->rw[a])); }
OP(do_barrier) { UNUSED; return pthread_barrier_wait(&w->barrier[a]) == PTHREAD_BARRIER_SERIAL_THREAD; }
OP(do_meet) { UNUSED; pthread_barrier_wait(&w->barrier[a]); return 0; }
static void once_body(void) { note("once "); }
OP(do_once) { UNUSED; return minus(pthread_once(&once[a], once_body)); }
OP(do_spin) { UNUSED; return minus(pthread_spin_lock(&w->spin[a])); }
OP(do_tryspin) { UNUSED; return minus(pthread_spin_trylock(&w->spin[a])); }
OP(do_unspin) { UNUSED; return minus(pthread_spin_unlock(&w->spin[a])); }

OP(do_flockfile) { UNUSED; flockfile(streams[a]); return 0; }
OP(do_ftrylockfile) { UNUSED; return ftrylockfile(streams[a]) != 0; }
OP(do_funlockfile) { UNUSED; funlockfile(streams[a]); return 0; }
OP(do_putc) { UNUSED; return fputc('a' + self, streams[a]); }
OP(do_fflush) { UNUSED; return fflush(streams[a]); }
OP(do_getc) { UNUSED; return fgetc(streams[a]); }
OP(do_ftell) { UNUSED; return ftell(streams[a]); }
OP(do_flushall) { UNUSED; return fflush(NULL); }
OP(do_reopen) {
    UNUSED;
    FILE *f = fopen("/dev/null", "r");
    return f ? fclose(f) : -1;
}
OP(do_rand) { UNUSED; return rand() % 1000; }

/* Processes. */
static long waited(pid_t pid, int status) {
    if (pid <= 0) return error(pid);
    for (int i = 1; i < strands; i++)
        if (w->pid[i] == pid && (WIFEXITED(status) || WIFSIGNALED(status))) w->ended[i] = status + 1;
    const char *kind = WIFEXITED(status) ? "exit" : WIFSIGNALED(status) ? "sig" : WIFSTOPPED(status) ? "stop" : "cont";
    int value = WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    note("%s,%s%d,", who(pid), kind, value);
    return 1;
}
OP(do_waitany) { UNUSED; int s; pid_t p = waitpid(-1, &s, 0); return waited(p, s); }
OP(do_waitnohang) { UNUSED; int s; pid_t p = waitpid(-1, &s, WNOHANG); return waited(p, s); }
OP(do_waitchild) { UNUSED; int s = 0; pid_t p = known[a] ? waitpid(known[a], &s, 0) : 0; return waited(p, s); }
OP(do_trychild) { UNUSED; int s = 0; pid_t p = known[a] ? waitpid(known[a], &s, WNOHANG) : 0; return waited(p, s); }
OP(do_waitstop) { UNUSED; int s = 0; pid_t p = known[a] ? waitpid(known[a], &s, WUNTRACED | WNOHANG) : 0; return waited(p, s); }
OP(do_waitcont) { UNUSED; int s = 0; pid_t p = known[a] ? waitpid(known[a], &s, WCONTINUED | WNOHANG) : 0; return waited(p, s); }
OP(do_peek) {
    UNUSED;
    siginfo_t info = { 0 };
    long result = error(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | WNOHANG));
    note("%s,%d,", who(info.si_pid), info.si_pid ? info.si_status : 0);
    return result;
}
OP(do_kill) { UNUSED; return known[a] ? error(kill(known[a], b)) : -600; }
/* Descriptors of processes, a strand's own. */
static int of_process[STRANDS];
OP(do_pidfd) {
    UNUSED;
    if (!known[a] || of_process[a]) return -600;
    int fd = syscall(SYS_pidfd_open, known[a], 0);
    if (fd >= 0) of_process[a] = fd;
    return fd < 0 ? -errno : 0;
}
OP(do_overyet) { UNUSED; struct pollfd p = { of_process[a], POLLIN, 0 }; return of_process[a] ? error(poll(&p, 1, 0)) : -600; }
OP(do_over) { UNUSED; struct pollfd p = { of_process[a], POLLIN, 0 }; return of_process[a] ? error(poll(&p, 1, -1)) : -600; }
OP(do_sendpidfd) { UNUSED; return of_process[a] ? error(syscall(SYS_pidfd_send_signal, of_process[a], b, 0, 0)) : -600; }
OP(do_trypidfd) {
    UNUSED;
    siginfo_t info = { 0 };
    if (!of_process[a]) return -600;
    long result = error(waitid(P_PIDFD, of_process[a], &info, WEXITED | WNOHANG));
    if (info.si_pid)
        for (int i = 1; i < strands; i++)
            if (w->pid[i] == info.si_pid) w->ended[i] = (info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status) + 1;
    note("%s,%d,", who(info.si_pid), info.si_pid ? info.si_status : 0);
    return result;
}
OP(do_getppid) { UNUSED; note("%s,", who(getppid())); return 0; }
OP(do__exit) { UNUSED; _exit(a); }
OP(do_exit) { UNUSED; exit(a); }

/* Signals. */
static const int SIGNALS[] = { SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGTERM, SIGCONT, SIGTSTP, SIGPIPE };
OP(do_handle) {
    UNUSED;
    struct sigaction act = { .sa_handler = handler, .sa_flags = b ? SA_RESTART : 0 };
    return error(sigaction(SIGNALS[a], &act, NULL));
}
OP(do_ignore) { UNUSED; struct sigaction act = { .sa_handler = SIG_IGN }; return error(sigaction(SIGNALS[a], &act, NULL)); }
OP(do_default) { UNUSED; struct sigaction act = { .sa_handler = SIG_DFL }; return error(sigaction(SIGNALS[a], &act, NULL)); }
static long mask(int how, int sig) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGNALS[sig]);
    return minus(pthread_sigmask(how, &set, NULL));
}
OP(do_block) { UNUSED; return mask(SIG_BLOCK, a); }
OP(do_unblock) { UNUSED; return mask(SIG_UNBLOCK, a); }
OP(do_send) { UNUSED; return known[a] ? error(kill(known[a], SIGNALS[b])) : -600; }
OP(do_sendthread) { UNUSED; return known[a] == getpid() ? minus(pthread_kill(w->thread[a], SIGNALS[b])) : -600; }
OP(do_raise) { UNUSED; return error(raise(SIGNALS[a])); }
OP(do_pending) { UNUSED; sigset_t set; sigpending(&set); return sigismember(&set, SIGNALS[a]); }
OP(do_pause) { UNUSED; return error(pause()); }
OP(do_suspend) {
    UNUSED;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    sigdelset(&set, SIGNALS[a]);
    return error(sigsuspend(&set));
}
OP(do_sigwait) { UNUSED; sigset_t set; sigemptyset(&set); sigaddset(&set, SIGNALS[a]); int s; int e = sigwait(&set, &s); return e ? -e : s; }
OP(do_sigtimed) {
    UNUSED;
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGNALS[a]);
    return error(sigtimedwait(&set, NULL, &MILLI));
}
OP(do_alarm) {
    UNUSED;
    struct itimerval value = { .it_value = { 0, 1000 } };
    return error(setitimer(ITIMER_REAL, &value, NULL));
}

OP(do_unalarm) {
    UNUSED;
    struct itimerval value = { 0 };
    return error(setitimer(ITIMER_REAL, &value, NULL));
}
static int signals_of(int sig, int waits) {
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGNALS[sig]);
    return signalfd(-1, &set, waits ? 0 : SFD_NONBLOCK);
}
OP(do_sfdread) {
    UNUSED;
    struct signalfd_siginfo info = { 0 };
    int fd = signals_of(a, b);
    long n = error(read(fd, &info, sizeof info));
    close(fd);
    return n < 0 ? n : (long)info.ssi_signo;
}
OP(do_sfdpoll) {
    UNUSED;
    struct pollfd fd = { signals_of(a, 0), POLLIN, 0 };
    long n = error(poll(&fd, 1, b == 2 ? -1 : b));
    close(fd.fd);
    return n;
}
OP(do_pollmask) {
    UNUSED;
    struct timespec time = { 0, b * 1000000 };
    struct pollfd fd = { pipes[a][0], POLLIN, 0 };
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    sigdelset(&set, SIGNALS[0]);
    return error(ppoll(&fd, 1, b == 2 ? NULL : &time, &set));
}
OP(do_pollnone) { UNUSED; return error(poll(NULL, 0, a)); }

/* Pipes, socket pairs, event counters. Ends: 0 for reading, 1 for writing. */
OP(do_read) { UNUSED; char data[64]; return error(read(pipes[a][0], data, b ? b : 1)); }
OP(do_write) { UNUSED; static char data[1 << 17]; return error(write(pipes[a][1], data, b ? b : 1)); }
OP(do_tee) { UNUSED; return error(tee(pipes[a][0], pipes[b][1], 64, c ? SPLICE_F_NONBLOCK : 0)); }
OP(do_closer) { UNUSED; return error(close(pipes[a][0])); }
OP(do_closew) { UNUSED; return error(close(pipes[a][1])); }
OP(do_nonblock) { UNUSED; return error(fcntl(pipes[a][b], F_SETFL, O_NONBLOCK)); }
OP(do_fionread) { UNUSED; int n = 0; long e = error(ioctl(pipes[a][0], FIONREAD, &n)); return e ? e : n; }
OP(do_polls) {
    UNUSED;
    struct pollfd fds[2] = { { pipes[a][0], POLLIN, 0 }, { pipes[b][0], POLLIN, 0 } };
    long result = error(poll(fds, a == b ? 1 : 2, c == 2 ? -1 : c));
    note("%x,%x,", fds[0].revents, fds[1].revents);
    return result;
}
OP(do_pollw) {
    UNUSED;
    struct pollfd fd = { pipes[a][1], POLLOUT, 0 };
    long result = error(poll(&fd, 1, b == 2 ? -1 : b));
    note("%x,", fd.revents);
    return result;
}
OP(do_evwrite) { UNUSED; uint64_t v = b ? b : 1; return error(write(events[a], &v, 8)); }
OP(do_evread) { UNUSED; uint64_t v = 0; long e = error(read(events[a], &v, 8)); return e < 0 ? e : (long)v; }
OP(do_evpoll) { UNUSED; struct pollfd fd = { events[a], POLLIN, 0 }; long e = error(poll(&fd, 1, b == 2 ? -1 : b)); note("%x,", fd.revents); return e; }
OP(do_evnonblock) { UNUSED; return error(fcntl(events[a], F_SETFL, O_NONBLOCK)); }
OP(do_ssend) { UNUSED; return error(send(sockets[a][b], "x", 1, MSG_NOSIGNAL | (c ? MSG_DONTWAIT : 0))); }
OP(do_srecv) { UNUSED; char x[8]; return error(recv(sockets[a][b], x, 8, c ? MSG_DONTWAIT : 0)); }
OP(do_shutdown) { UNUSED; return error(shutdown(sockets[a][b], c)); }
OP(do_closes) { UNUSED; return error(close(sockets[a][b])); }
OP(do_epwait) {
    UNUSED;
    struct epoll_event events[4];
    int n = epoll_wait(epolls[a], events, 4, b == 2 ? -1 : b);
    for (int i = 0; i < n; i++) note("%d=%x,", events[i].data.u32, events[i].events);
    return error(n);
}
OP(do_epadd) {
    UNUSED;
    struct epoll_event event = { .events = EPOLLIN | (c ? EPOLLET : 0), .data.u32 = b };
    return error(epoll_ctl(epolls[a], EPOLL_CTL_ADD, pipes[b][0], &event));
}
OP(do_epdel) { UNUSED; return error(epoll_ctl(epolls[a], EPOLL_CTL_DEL, pipes[b][0], NULL)); }
OP(do_dup) { UNUSED; return error(dup2(pipes[a][b], pipes[c][b])) < 0 ? -errno : 0; }
static int first_fd;
/* What others inherit is between: those of the pipes by name, the rest from the first that is free at the start. */
static long number(long fd) {
    for (int i = 0; i < 2 * N && fd > 0; i++)
        if (fd == pipes[i / 2][i % 2]) return 100 + i;
    return fd < 0 ? error(fd) : fd - first_fd;
}
OP(do_newfd) { UNUSED; return number(dup(0)); }
OP(do_dupfd) { UNUSED; return number(dup(pipes[a][b])); }
OP(do_newpipe) { UNUSED; int ends[2] = { -1, -1 }; long e = error(pipe(ends)); note("%ld,%ld,", number(ends[0]), number(ends[1])); return e; }
OP(do_openfd) { UNUSED; return number(open("/dev/null", O_RDONLY)); }
OP(do_getfl) { UNUSED; return error(fcntl(pipes[a][b], F_GETFL)); }
OP(do_setfl) { UNUSED; return error(fcntl(pipes[a][b], F_SETFL, c ? O_NONBLOCK : 0)); }
OP(do_fstat) { UNUSED; struct stat s; long e = error(fstat(pipes[a][b], &s)); return e; }

/* Timers. */
OP(do_tset) { UNUSED; struct itimerspec t = { .it_value = { 0, b ? 1000000 : 0 }, .it_interval = { 0, c ? 1000000 : 0 } }; return error(timerfd_settime(timers[a], 0, &t, NULL)); }
OP(do_tread) { UNUSED; uint64_t v; long e = error(read(timers[a], &v, 8)); return e < 0 ? e : (long)v; }

/* Locks of files, offsets. */
OP(do_flock) { UNUSED; return error(flock(files[a], b == 0 ? LOCK_SH : b == 1 ? LOCK_EX : b == 2 ? LOCK_UN : b == 3 ? LOCK_SH | LOCK_NB : LOCK_EX | LOCK_NB)); }
static long record(int command, int file, int type) {
    struct flock lock = { .l_type = type == 0 ? F_RDLCK : type == 1 ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 4 };
    long result = error(fcntl(files[file], command, &lock));
    if (command == F_GETLK && result == 0) note("%d,%s,", lock.l_type, lock.l_type == F_UNLCK ? "" : who(lock.l_pid));
    return result;
}
OP(do_setlk) { UNUSED; return record(F_SETLK, a, b); }
OP(do_setlkw) { UNUSED; return record(F_SETLKW, a, b); }
OP(do_getlk) { UNUSED; return record(F_GETLK, a, b); }
OP(do_lseek) { UNUSED; return error(lseek(files[a], b, c ? SEEK_CUR : SEEK_SET)); }
OP(do_fread) { UNUSED; char x[8]; long n = error(read(files[a], x, b ? b : 1)); return n > 0 ? n * 1000 + x[0] : n; }
OP(do_fwrite) { UNUSED; char x[8]; memset(x, 'a' + self, 8); return error(write(files[a], x, b ? b : 1)); }
OP(do_pread) { UNUSED; char x[8]; long n = error(pread(files[a], x, 1, b)); return n > 0 ? x[0] : n; }
OP(do_pwrite) { UNUSED; char x = 'a' + self; return error(pwrite(files[a], &x, 1, b)); }
OP(do_size) { UNUSED; struct stat s; long e = error(fstat(files[a], &s)); return e ? e : s.st_size; }
/* Files without a name. */
OP(do_nread) { UNUSED; char x[8]; long n = error(read(nameless[a], x, b ? b : 1)); return n > 0 ? n * 1000 + x[0] : n; }
OP(do_nwrite) { UNUSED; char x[8]; memset(x, 'a' + self, 8); return error(write(nameless[a], x, b ? b : 1)); }
OP(do_nseek) { UNUSED; return error(lseek(nameless[a], b, c ? SEEK_CUR : SEEK_SET)); }
OP(do_npread) { UNUSED; char x[8]; long n = error(pread(nameless[a], x, 1, b)); return n > 0 ? x[0] : n; }
OP(do_nsize) { UNUSED; struct stat s; long e = error(fstat(nameless[a], &s)); return e ? e : s.st_size; }
OP(do_ncut) { UNUSED; return error(ftruncate(nameless[a], b)); }
OP(do_closef) { UNUSED; return error(close(files[a])); }
OP(do_umask) { UNUSED; return umask(a); }

/* Other state that threads or processes share, or may set of each other. */
static char *in_place(char *to, const char *name) { snprintf(to, PATH_MAX, "%s%s", place, name); return to; }
OP(do_made) {
    UNUSED;
    struct stat s = { 0 };
    char name[8] = { 'm', '0' + self, 0 };
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0666);
    if (fd < 0) return -errno;
    fstat(fd, &s), close(fd), unlink(name);
    return s.st_mode & 0777;
}
OP(do_cd) { UNUSED; char path[PATH_MAX]; return error(chdir(in_place(path, a ? "/sub" : ""))); }
OP(do_cwd) { UNUSED; char path[PATH_MAX]; return getcwd(path, sizeof path) ? !strcmp(path + strlen(path) - 4, "/sub") : -errno; }
OP(do_there) { UNUSED; return error(access("there", F_OK)); }
OP(do_ln) { UNUSED; char from[PATH_MAX], to[PATH_MAX]; return error(link(in_place(from, "/sub/there"), in_place(to, "/ln"))); }
OP(do_unln) { UNUSED; char path[PATH_MAX]; return error(unlink(in_place(path, "/ln"))); }
OP(do_nlink) { UNUSED; struct stat s; return error(fstat(files[0], &s)) ? -errno : (long)s.st_nlink; }
OP(do_nice) { UNUSED; return known[a] ? error(setpriority(PRIO_PROCESS, known[a], b)) : -600; }
OP(do_getnice) { UNUSED; errno = 0; long v = known[a] ? getpriority(PRIO_PROCESS, known[a]) : -600; return errno ? -errno : v; }
OP(do_policy) { UNUSED; struct sched_param p = { 0 }; return known[a] ? error(sched_setscheduler(known[a], b ? SCHED_BATCH : SCHED_OTHER, &p)) : -600; }
OP(do_getpolicy) { UNUSED; return known[a] ? error(sched_getscheduler(known[a])) : -600; }
OP(do_limit) { UNUSED; struct rlimit r = { a, 100 }; return error(setrlimit(RLIMIT_CORE, &r)); }
OP(do_getlimit) { UNUSED; struct rlimit r; return getrlimit(RLIMIT_CORE, &r) ? -errno : (long)r.rlim_cur; }
OP(do_pipesz) { UNUSED; return error(fcntl(pipes[a][1], F_SETPIPE_SZ, 4096 << b)); }
OP(do_getpipesz) { UNUSED; return error(fcntl(pipes[a][0], F_GETPIPE_SZ)); }
OP(do_opt) { UNUSED; int v = b; return error(setsockopt(sockets[a][0], SOL_SOCKET, SO_PRIORITY, &v, sizeof v)); }
OP(do_getopt) { UNUSED; int v = 0; socklen_t n = sizeof v; long e = error(getsockopt(sockets[a][0], SOL_SOCKET, SO_PRIORITY, &v, &n)); return e ? e : v; }
static __thread void *memory;
OP(do_shmat) { UNUSED; if (memory) return -601; void *at = shmat(shmid, NULL, 0); if (at == (void *)-1) return -errno; memory = at; return 0; }
OP(do_shmdt) { UNUSED; if (!memory) return -601; long e = error(shmdt(memory)); memory = NULL; return e; }
OP(do_nattch) { UNUSED; struct shmid_ds ds; return shmctl(shmid, IPC_STAT, &ds) ? -errno : (long)ds.shm_nattch; }
OP(do_shmrm) { UNUSED; return error(shmctl(shmid, IPC_RMID, NULL)); }

/* Groups and sessions. */
OP(do_setpg) { UNUSED; return known[a] ? error(setpgid(known[a], b ? known[b] : 0)) : -600; }
OP(do_ownpg) { UNUSED; return error(setpgid(0, 0)); }
OP(do_getpg) { UNUSED; pid_t g = known[a] ? getpgid(known[a]) : 0; if (g < 0) return -errno; note("%s,", who(g)); return 0; }
OP(do_setsid) { UNUSED; return setsid() < 0 ? -errno : 0; }
OP(do_getsid) { UNUSED; pid_t g = known[a] ? getsid(known[a]) : 0; if (g < 0) return -errno; note("%d,", g == known[a]); return 0; }
OP(do_killpg) { UNUSED; return known[a] ? error(kill(-known[a], 0)) : -600; }
OP(do_waitpg) { UNUSED; int s; pid_t p = known[a] ? waitpid(-known[a], &s, WNOHANG) : 0; if (p < 0) return -errno; note("%s,", who(p)); if (p > 0) for (int i = 1; i < strands; i++) if (w->pid[i] == p) w->ended[i] = s + 1; return 0; }

/* System V and POSIX queues and sets. */
OP(do_semop) { UNUSED; struct sembuf s = { a, b, c ? IPC_NOWAIT : 0 }; return error(semop(semid, &s, 1)); }
OP(do_semminus) { UNUSED; struct sembuf s = { a, -b, c ? IPC_NOWAIT : 0 }; return error(semop(semid, &s, 1)); }
OP(do_semtimed) { UNUSED; struct sembuf s = { a, -b, 0 }; return error(semtimedop(semid, &s, 1, &MILLI)); }
OP(do_semundo) { UNUSED; struct sembuf s = { a, b - 1, SEM_UNDO | IPC_NOWAIT }; return error(semop(semid, &s, 1)); }
OP(do_semctl) {
    UNUSED;
    static const int WHAT[] = { GETVAL, GETNCNT, GETZCNT, GETPID };
    long v = error(semctl(semid, a, WHAT[b]));
    if (b == 3 && v >= 0) { note("%s,", who(v)); return 0; }
    return v;
}
OP(do_semset) { UNUSED; return error(semctl(semid, a, SETVAL, b)); }
OP(do_semrm) { UNUSED; return error(semctl(semid, 0, IPC_RMID)); }
struct letter { long type; char text[8]; };
OP(do_msgsnd) { UNUSED; struct letter m = { a ? a : 1, { 'a' + self } }; return error(msgsnd(msgid, &m, 1, c ? IPC_NOWAIT : 0)); }
OP(do_msgrcv) { UNUSED; struct letter m; long n = error(msgrcv(msgid, &m, 8, a, c ? IPC_NOWAIT : 0)); return n > 0 ? m.type * 1000 + m.text[0] : n; }
OP(do_msgrm) { UNUSED; return error(msgctl(msgid, IPC_RMID, NULL)); }
OP(do_mqsend) { UNUSED; char x = 'a' + self; struct timespec *t = SOON; return error(c ? mq_timedsend(queue, &x, 1, a, t) : mq_send(queue, &x, 1, a)); }
OP(do_mqrecv) {
    UNUSED;
    char x[8];
    unsigned priority = 0;
    struct timespec *t = SOON;
    long n = error(c ? mq_timedreceive(queue, x, 8, &priority, t) : mq_receive(queue, x, 8, &priority));
    return n > 0 ? priority * 1000 + x[0] : n;
}
static void told(union sigval value) { sem_post(&w->sem[value.sival_int]); }
OP(do_mqask) {
    UNUSED;
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = a };
    event.sigev_notify_function = told;
    return error(mq_notify(queue, &event));
}
OP(do_mqunask) { UNUSED; return error(mq_notify(queue, NULL)); }
OP(do_mqlen) { UNUSED; struct mq_attr a1; mq_getattr(queue, &a1); return a1.mq_curmsgs; }

/* Descriptors in messages, other programs, handlers at the end. */
static __thread int given = -1;
OP(do_passfd) {
    UNUSED;
    char x = 'x', room[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec one = { &x, 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &pipes[b][c], sizeof(int));
    return error(sendmsg(sockets[a][0], &message, MSG_NOSIGNAL));
}
OP(do_takefd) {
    UNUSED;
    char x = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec one = { &x, 1 };
    struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
    long n = error(recvmsg(sockets[a][1], &message, b ? MSG_DONTWAIT : 0));
    struct cmsghdr *first = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (first) memcpy(&given, CMSG_DATA(first), sizeof(int)), note("%d,", given);
    return n;
}
OP(do_readgiven) { UNUSED; char x; return given < 0 ? -600 : error(read(given, &x, 1)); }
OP(do_writegiven) { UNUSED; return given < 0 ? -600 : error(write(given, "y", 1)); }
OP(do_closegiven) { UNUSED; long e = given < 0 ? -600 : error(close(given)); given = -1; return e; }
OP(do_cloexec) { UNUSED; return error(fcntl(pipes[a][b], F_SETFD, FD_CLOEXEC)); }
static const char *own_path;
OP(do_exec) {
    UNUSED;
    char fd[16];
    snprintf(fd, sizeof fd, "%d", c ? pipes[b][c - 1] : -1);
    char status[16];
    snprintf(status, sizeof status, "%ld", a);
    execl(own_path, own_path, "--then", status, fd, c == 2 ? "write" : "read", (char *)NULL);
    return -errno;
}
static int sight(int what, int fd);
/* What the other program does. */
static int then(char **argv) {
    int fd = atoi(argv[1]);
    if (!strcmp(argv[2], "sight")) return sight(atoi(argv[0]), fd);
    char x = 'z';
    long n = fd < 0 ? 0 : !strcmp(argv[2], "write") ? write(fd, &x, 1) : read(fd, &x, 1);
    return n < 0 ? 100 + errno % 100 : atoi(argv[0]) + n;
}
static void posts(void) { sem_post(&w->sem[0]); }
static void writes(void) { if (write(pipes[0][1], "h", 1) < 0) {} }
OP(do_atexit) { UNUSED; return atexit(a ? writes : posts); }

/* Kernel-level waits on words, which nobody changes: what threads do to memory is in no order that vsrun could see. */
OP(do_fwait) { UNUSED; return error(syscall(SYS_futex, &w->word[a], 0, 0, c ? &MILLI : NULL, NULL, 0)); }
OP(do_fwake) { UNUSED; return error(syscall(SYS_futex, &w->word[a], 1, 1, NULL, NULL, 0)); }

#include "more.h"
#include "cells.h"

static const struct row {
    const char *name;
    long (*call)(long, long, long);
} ROWS[] = {
#define R(name) { #name, do_##name }
    R(thread), R(fork), R(join), R(tryjoin), R(timedjoin), R(cancel), R(tkill), R(texit), R(testcancel), R(yield), R(sleep),
    R(lock), R(trylock), R(timedlock), R(unlock), R(consistent), R(cwait), R(ctimed), R(csignal), R(cbroadcast),
    R(post), R(wait), R(trywait), R(timedwait), R(getvalue),
    R(rd), R(wr), R(tryrd), R(trywr), R(timedrd), R(timedwr), R(rwunlock), R(barrier), R(meet), R(once), R(spin), R(tryspin), R(unspin),
    R(flockfile), R(ftrylockfile), R(funlockfile), R(putc), R(fflush),
    R(getc), R(ftell), R(flushall), R(reopen), R(rand),
    R(waitany), R(waitnohang), R(waitchild), R(trychild), R(waitstop), R(waitcont), R(peek), R(pidfd), R(overyet), R(over), R(sendpidfd), R(trypidfd), R(kill), R(getppid), R(_exit), R(exit),
    R(handle), R(ignore), R(default), R(block), R(unblock), R(send), R(sendthread), R(raise), R(pending), R(pause), R(suspend),
    R(sigwait), R(sigtimed), R(alarm),
    R(read), R(write), R(tee), R(closer), R(closew), R(nonblock), R(fionread), R(polls), R(pollw), R(pollmask), R(pollnone), R(unalarm), R(sfdread), R(sfdpoll),
    R(nread), R(nwrite), R(nseek), R(npread), R(nsize), R(ncut),
    R(evwrite), R(evread), R(evpoll), R(evnonblock), R(ssend), R(srecv), R(shutdown), R(closes), R(epwait), R(epadd), R(epdel),
    R(dup), R(newfd), R(dupfd), R(newpipe), R(openfd), R(getfl), R(setfl), R(fstat), R(tset), R(tread),
    R(flock), R(setlk), R(setlkw), R(getlk), R(lseek), R(fread), R(fwrite), R(pread), R(pwrite), R(size), R(closef), R(umask),
    R(made), R(cd), R(cwd), R(there), R(ln), R(unln), R(nlink), R(nice), R(getnice), R(policy), R(getpolicy), R(limit), R(getlimit),
    R(pipesz), R(getpipesz), R(opt), R(getopt), R(shmat), R(shmdt), R(nattch), R(shmrm),
    R(setpg), R(ownpg), R(getpg), R(setsid), R(getsid), R(killpg), R(waitpg),
    R(semop), R(semminus), R(semtimed), R(semundo), R(semctl), R(semset), R(semrm), R(msgsnd), R(msgrcv), R(msgrm),
    R(mqsend), R(mqrecv), R(mqask), R(mqunask), R(mqlen), R(fwait), R(fwake),
    R(passfd), R(takefd), R(readgiven), R(writegiven), R(closegiven), R(cloexec), R(exec), R(atexit),
    R(ownopen), R(ownclose), R(ownflock), R(owntry), R(ownwait), R(rlock), R(rtry), R(rmend), R(rgive), R(asks), R(joins),
    R(child), R(executed), R(sees), R(nocloexec), R(waits), R(waitsany), R(waitid), R(stopself),
    R(objopen), R(objcut), R(objsize), R(objlinks), R(objclose), R(objunlink), R(objput), R(objget), R(pagein), R(pageout),
    R(pglock), R(pgtry), R(pgunlock), R(pgcwait), R(pgctimed), R(pgsignal), R(pgpost), R(pgwait), R(pgtrywait), R(pgvalue),
    R(ffmake), R(ffopen), R(ffclose), R(ffread), R(ffwrite), R(ffpoll), R(ffunlink), R(ffhas),
    R(cellload), R(cellstore), R(celladd), R(cellinc), R(cellxadd), R(cellxchg), R(cellcas), R(cellbyte), R(cellhalf), R(cellfence), R(cellpoll),
};

/* The program has an operation of this name, or with `*` at its end, of a name that begins so. */
static int uses(const char *name) {
    size_t n = strcspn(name, "*");
    for (int s = 0; s < strands; s++)
        for (int i = 0; i < program[s].n; i++)
            if (!strncmp(program[s].ops[i].row->name, name, name[n] ? n : n + 1)) return 1;
    return 0;
}
static int uses_any(const char *const *names) {
    for (; *names; names++)
        if (uses(*names)) return 1;
    return 0;
}
#define USES(...) uses_any((const char *const[]){ __VA_ARGS__, NULL })
static int uses_page(int kind) {
    for (int s = 0; s < strands; s++)
        for (int i = 0; i < program[s].n; i++)
            if (program[s].ops[i].row->call == do_pagein && program[s].ops[i].a == kind) return 1;
    return 0;
}
/* The strand that starts this one as a thread, or -1. */
static int thread_of(int k) {
    for (int s = 0; s < strands; s++)
        for (int i = 0; i < program[s].n; i++)
            if (program[s].ops[i].row->call == do_thread && program[s].ops[i].a == k) return s;
    return -1;
}
static int process_of(int k) {
    for (int up; (up = thread_of(k)) >= 0;) k = up;
    return k;
}
/* How far the threads of a process got that was killed shows in memory only, unless they did something that others can tell. So it is with
   one that ends before it has joined all that are in the program. */
static int is_hidden(int k) {
    int process = process_of(k);
    if (w->ended[process] && WIFSIGNALED(w->ended[process] - 1)) return 1;
    for (int i = 1; process > 0 && i < strands; i++)
        if (i != process && process_of(i) == process && !w->joined[i]) return 1;
    return 0;
}

/* Strand k may start strand i. Others do not look at who has: that would be memory that is used without an order. */
static int starts(int k, int i) {
    for (int n = 0; n < program[k].n; n++) {
        struct op *op = &program[k].ops[n];
        if ((op->row->call == do_thread || op->row->call == do_fork) && op->a == i) return w->creator[i] == k;
    }
    return 0;
}

static void run(int k) {
    long result = 0;
    int handled = uses("handle");
    for (int i = 0; i < program[k].n; i++) {
        struct op *op = &program[k].ops[i];
        if (op->if_done && result != 0) continue;
        delay();
        // A place where a handler may run between what was told before and what is told then, as natively anywhere.
        sigset_t set;
        if (handled) sigpending(&set);
        result = op->row->call(op->a, op->b, op->c);
        int saved = errno;
        if (handled) sigpending(&set);
        errno = saved;
        if (result <= -512) note("e ");
        else note("%ld ", result);
    }
    delay();
    /* Who started threads waits for them, and for children. */
    for (int i = 1; i < strands; i++) {
        if (starts(k, i) && w->started[i] == 1 && !w->joined[i]) {
            void *result;
            int error = pthread_join(w->thread[i], &result);
            if (error) note("join%d ", error);
            else w->joined[i] = 1;
        }
    }
    int any = 0;
    for (int i = 1; i < strands; i++) any |= starts(k, i) && w->started[i] == 2;
    while (any) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) break;
        for (int i = 1; i < strands; i++)
            if (w->pid[i] == pid) w->ended[i] = status + 1;
    }
}

/* What has a name, and memory in it. */
static void set_up_names(const char *dir) {
    char path[PATH_MAX];
    // The same in each execution: the directory of the outcomes is this run's alone.
    snprintf(path, sizeof path, "%s", dir);
    if (outcome && strrchr(path, '/') > path) *strrchr(path, '/') = 0;
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (int i = 0; i < 2; i++) snprintf(memory_name[i], sizeof memory_name[i], "/%.48s.%d", base, i);
    if (USES("obj*") || uses_page(NAMED)) {
        shm_unlink(memory_name[0]), shm_unlink(memory_name[1]);
        int fd = shm_open(memory_name[0], O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || ftruncate(fd, 4096) || !(first_seen[NAMED] = mapped(fd))) abort();
        close(fd);
    }
    if (uses_page(SEGMENT) && (first_seen[SEGMENT] = shmat(shmid, NULL, 0)) == (void *)-1) abort();
    if (uses_page(UNNAMED)) first_seen[UNNAMED] = mapped(-1);
    if (uses_page(OF_FILE)) {
        int fd = page_file(O_CREAT | O_TRUNC);
        if (fd < 0 || ftruncate(fd, 4096) || !(first_seen[OF_FILE] = mapped(fd))) abort();
        close(fd);
    }
    for (int i = 0; i < PAGES; i++)
        if (first_seen[i]) make_page(first_seen[i]);
    if (uses("ff*"))
        for (int i = 0; i < N; i++) unlink(fifo(path, i));
}

static void set_up(const char *dir) {
    w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, (own_memory ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
    memset(w, 0, sizeof *w);
    for (int i = 0; i < STRANDS; i++) w->creator[i] = -1;
    w->pid[0] = known[0] = getpid();
    w->thread[0] = pthread_self();
    int shared = uses("fork") ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
    static const int TYPES[N] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_NORMAL };
    for (int i = 0; i < N; i++) {
        pthread_mutexattr_t mutex;
        pthread_mutexattr_init(&mutex), pthread_mutexattr_setpshared(&mutex, shared), pthread_mutexattr_settype(&mutex, TYPES[i]);
        if (i == 3) pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&w->mutex[i], &mutex);
        pthread_condattr_t cond;
        pthread_condattr_init(&cond), pthread_condattr_setpshared(&cond, shared);
        pthread_cond_init(&w->cond[i], &cond);
        pthread_rwlockattr_t rw;
        pthread_rwlockattr_init(&rw), pthread_rwlockattr_setpshared(&rw, shared);
        if (i & 1) pthread_rwlockattr_setkind_np(&rw, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        pthread_rwlock_init(&w->rw[i], &rw);
        pthread_barrierattr_t barrier;
        pthread_barrierattr_init(&barrier), pthread_barrierattr_setpshared(&barrier, shared);
        pthread_barrier_init(&w->barrier[i], &barrier, 2);
        pthread_spin_init(&w->spin[i], shared);
        sem_init(&w->sem[i], shared == PTHREAD_PROCESS_SHARED, i & 1);
    }
    char path[PATH_MAX];
    // What an execution has left that was cut.
    static const char *const LEFT[] = { "m0", "m1", "m2", "m3", "ln", "sub/m0", "sub/m1", "sub/m2", "sub/m3" };
    for (size_t i = 0; USES(STATE) && i < sizeof LEFT / sizeof *LEFT; i++) snprintf(path, sizeof path, "%s/%s", dir, LEFT[i]), unlink(path);
    for (int i = 0; i < N; i++) {
        if (USES("child", "executed", "sees", "nocloexec", "read", "write", "tee", "closer", "closew", "nonblock", "fionread", "pipesz", "getpipesz", "poll*", "ep*", "dup", "dupfd", "getfl", "setfl", "fstat", "passfd", "takefd", "cloexec", "exec", "atexit")) {
            if (pipe(pipes[i])) abort();
            fcntl(pipes[i][1], F_SETPIPE_SZ, 4096);
        }
        if (USES("ssend", "srecv", "shutdown", "closes", "opt", "getopt", "passfd", "takefd") && socketpair(AF_UNIX, i & 1 ? SOCK_DGRAM : SOCK_STREAM, 0, sockets[i])) abort();
        if (uses("ev*") && (events[i] = eventfd(i >> 1, i & 1 ? EFD_SEMAPHORE : 0)) < 0) abort();
        if (uses("ep*") && (epolls[i] = epoll_create1(0)) < 0) abort();
        if (USES("tset", "tread") && (timers[i] = timerfd_create(CLOCK_MONOTONIC, i & 1 ? TFD_NONBLOCK : 0)) < 0) abort();
        if (USES("flock", "setlk", "getlk", "lseek", "fread", "fwrite", "pread", "pwrite", "size", "own*")) {
            snprintf(path, sizeof path, "%s/file%d", dir, i / 2);
            files[i] = open(path, O_RDWR | O_CREAT | (i & 1 ? O_APPEND : 0), 0600);
            if (files[i] < 0 || ftruncate(files[i], 0) || pwrite(files[i], "0123", 4, 0) != 4) abort();
        }
        if (i < 2 && USES("nread", "nwrite", "nseek", "npread", "nsize", "ncut")) {
            snprintf(path, sizeof path, "%s/nameless", dir);
            nameless[i] = i ? open(path, O_RDWR | O_CREAT, 0600) : memfd_create("nameless", 0);
            if (i) unlink(path);
            if (nameless[i] < 0 || pwrite(nameless[i], "0123", 4, 0) != 4) abort();
        }
        if (USES(STREAMS)) {
            /* A file that is read at the end, a pipe, a file to read, memory. */
            snprintf(path, sizeof path, "%s/stream%d", dir, i);
            if (i == 0) streams[i] = fopen(path, "w+");
            if (i == 1) streams[i] = pipe2(stream_pipe, O_NONBLOCK) ? NULL : fdopen(stream_pipe[1], "w");
            if (i == 2) {
                FILE *f = fopen(path, "w");
                if (!f || fputs("0123456789", f) < 0 || fclose(f)) abort();
                streams[i] = fopen(path, "r");
            }
            if (i == 3) streams[i] = open_memstream(&stream_text, &stream_size);
            if (!streams[i]) abort();
        }
    }
    snprintf(place, sizeof place, "%s", dir);
    if (USES(STATE)) {
        snprintf(path, sizeof path, "%s/sub", dir), mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/ln", dir), unlink(path);
        snprintf(path, sizeof path, "%s/sub/there", dir);
        files[0] = open(path, O_RDWR | O_CREAT, 0600);
        if (files[0] < 0 || chdir(dir)) abort();
    }
    if ((USES("shm*", "nattch") || uses_page(SEGMENT)) && (shmid = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)) < 0) abort();
    if (made && (USES("shm*", "nattch") || uses_page(SEGMENT))) made->segment = shmid + 1;
    set_up_names(dir);
    if (USES("limit", "getlimit", "child", "executed", "sees")) do_limit(5, 0, 0);
    umask(022);
    if (USES("newfd", "dupfd", "newpipe", "openfd")) {
        first_fd = dup(0);
        close(first_fd);
    }
    if (uses("sem*") && (semid = semget(IPC_PRIVATE, N, IPC_CREAT | 0600)) < 0) abort();
    if (uses("msg*") && (msgid = msgget(IPC_PRIVATE, IPC_CREAT | 0600)) < 0) abort();
    if (made && uses("sem*")) made->set = semid + 1;
    if (made && uses("msg*")) made->queue = msgid + 1;
    if (uses("mq*")) {
        struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8 };
        snprintf(path, sizeof path, "/vsrun-native-%d", getpid());
        queue = mq_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
        if (queue == (mqd_t)-1) abort();
        mq_unlink(path);
    }
}

/* Everything that can be read of the objects, when nobody else is left. */
static void look(char *text, size_t size) {
    size_t at = 0;
#define SAY(...) (at += snprintf(text + at, at < size ? size - at : 0, __VA_ARGS__))
    for (int i = 0; i < N; i++) {
        if (USES("post", "wait", "trywait", "timedwait")) {
            int v;
            sem_getvalue(&w->sem[i], &v);
            SAY("%d", v);
        }
        if (USES("lock", "trylock", "timedlock", "cwait")) SAY("m%d", pthread_mutex_trylock(&w->mutex[i]));
        if (USES("rd", "wr", "tryrd", "trywr", "timedrd", "timedwr")) SAY("w%dr%d", pthread_rwlock_trywrlock(&w->rw[i]), pthread_rwlock_tryrdlock(&w->rw[i]));
        if (pipes[i][0] > 0) {
            int n = -1;
            ioctl(pipes[i][0], FIONREAD, &n);
            SAY("p%d,%x,%x", n, fcntl(pipes[i][0], F_GETFL), fcntl(pipes[i][1], F_GETFL));
        }
        if (events[i]) {
            uint64_t v = 0;
            fcntl(events[i], F_SETFL, O_NONBLOCK);
            if (read(events[i], &v, 8) < 0) v = 77;
            SAY("e%ld", (long)v);
        }
        if (sockets[i][0] > 0) {
            int n[2] = { -1, -1 };
            ioctl(sockets[i][0], FIONREAD, &n[0]), ioctl(sockets[i][1], FIONREAD, &n[1]);
            SAY("s%d,%d", n[0], n[1]);
        }
        if (files[i] > 0) {
            char x[16] = { 0 };
            long offset = lseek(files[i], 0, SEEK_CUR);
            if (pread(files[i], x, 15, 0) < 0) x[0] = '?';
            SAY("f%ld'%s'", offset, x);
        }
        if (i < 2 && nameless[i] > 0) {
            char x[16] = { 0 };
            long offset = lseek(nameless[i], 0, SEEK_CUR);
            if (pread(nameless[i], x, 15, 0) < 0) x[0] = '?';
            SAY("n%ld'%s'", offset, x);
        }
        if (streams[i]) {
            char x[16] = { 0 };
            SAY("t%ld", ftell(streams[i]));
            if (i != 2) fflush(streams[i]);
            if (i == 0 && pread(fileno(streams[i]), x, 15, 0) < 0) x[0] = '?';
            if (i == 1 && read(stream_pipe[0], x, 15) < 0) x[0] = '-';
            SAY("'%s'", i == 3 ? stream_text : x);
        }
        if (uses("cell*")) SAY("c%lx", *cell(i));
        if (uses("sem*") && semid >= 0) {
            struct semid_ds ds = { 0 };
            long e = semctl(semid, 0, IPC_STAT, &ds);
            SAY("v%d,%s,%ld%d", semctl(semid, i, GETVAL), who(semctl(semid, i, GETPID) > 0 ? semctl(semid, i, GETPID) : 0), e, ds.sem_otime != 0);
        }
    }
    if (uses("msg*")) {
        struct msqid_ds ds = { 0 };
        long e = msgctl(msgid, IPC_STAT, &ds);
        SAY("q%ld,%ld,%ld,%s,%s", e, (long)ds.msg_qnum, (long)ds.msg_cbytes, who(ds.msg_lspid), who(ds.msg_lrpid));
    }
    if (uses("mq*")) {
        struct mq_attr attr = { 0 };
        mq_getattr(queue, &attr);
        SAY("q%ld", attr.mq_curmsgs);
    }
    if (uses("sig*") || USES("send", "raise", "block", "pending")) {
        sigset_t set;
        sigpending(&set);
        for (int i = 0; i < 5; i++) SAY("g%d", sigismember(&set, SIGNALS[i]));
    }
    if (USES("umask", "made")) SAY("u%o", umask(0));
    if (USES("nice", "getnice")) SAY("n%d", getpriority(PRIO_PROCESS, 0));
    if (USES("policy", "getpolicy")) SAY("l%d", sched_getscheduler(0));
    if (USES("limit", "getlimit")) SAY("r%ld", do_getlimit(0, 0, 0));
    if (USES("pipesz", "getpipesz")) SAY("z%ld", do_getpipesz(0, 0, 0));
    if (USES("opt", "getopt")) SAY("o%ld", do_getopt(0, 0, 0));
    if (USES("shm*", "nattch")) SAY("a%ld", do_nattch(0, 0, 0));
    if (USES(STATE)) SAY("d%ld,%ld", do_cwd(0, 0, 0), do_nlink(0, 0, 0));
    if (USES("rlock", "rtry")) SAY("R%d", pthread_mutex_trylock(&w->mutex[3]));
    for (int i = 0; i < PAGES; i++) {
        int v;
        if (first_seen[i]) sem_getvalue(&first_seen[i]->sem, &v), SAY("y%d,%d", pthread_mutex_trylock(&first_seen[i]->mutex), v);
    }
    for (int i = 0; i < 2 && uses("obj*"); i++) {
        struct stat s = { 0 };
        int fd = shm_open(memory_name[i], O_RDWR, 0);
        char x = 0;
        long e = fd < 0 ? -errno : fstat(fd, &s) < 0 || (i && pread(fd, &x, 1, 0) < 0);
        SAY("o%ld,%ld,%d", e, (long)s.st_size, x), close(fd);
    }
    for (int i = 0; i < 2 && uses("ff*"); i++) SAY("f%ld", do_ffhas(i, 0, 0));
#undef SAY
}

static void clean(void) {
    if (USES("obj*") || uses_page(NAMED)) shm_unlink(memory_name[0]), shm_unlink(memory_name[1]);
    if (uses("sem*")) semctl(semid, 0, IPC_RMID);
    if (uses("msg*")) msgctl(msgid, IPC_RMID, NULL);
    if (USES("shm*", "nattch") || uses_page(SEGMENT)) shmctl(shmid, IPC_RMID, NULL);
}

static void whole(void) {
    run(0);
    // Who was asked to end, and did not come to notice, tells what it saw.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    size_t at = 0;
    char *text = w->outcome;
#define SAY(...) (at += snprintf(text + at, sizeof w->outcome - at, __VA_ARGS__))
    for (int i = 0; i < strands; i++) {
        if (w->used[i] > 0 && w->log[i][w->used[i] - 1] == ' ') w->used[i]--;
        SAY("%s%.*s", i ? "|" : "", is_hidden(i) ? 0 : (int)w->used[i], w->log[i]);
        if (w->ended[i] && process_of(i) == i) SAY(" #%x", w->ended[i] - 1);
    }
    SAY(" ; ");
#undef SAY
    look(text + at, sizeof w->outcome - at);
    clean();
}

/* ---- reading the program ---- */
static void fail(const char *what, const char *where) {
    fprintf(stderr, "driver: %s at '%.20s'\n", what, where);
    exit(99);
}

static void parse(const char *text) {
    strands = 1;
    while (*text) {
        if (*text == ' ') { text++; continue; }
        if (*text == '|') {
            if (++strands > STRANDS) fail("too many strands", text);
            text++;
            continue;
        }
        int if_done = *text == '?';
        text += if_done;
        size_t n = strcspn(text, "0123456789 |");
        /* Names that end in a digit. */
        const struct row *row = NULL;
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            size_t length = strlen(ROWS[i].name);
            if (length >= n && !strncmp(ROWS[i].name, text, length) && (!row || length > strlen(row->name))) row = &ROWS[i];
        }
        if (!row) fail("unknown operation", text);
        text += strlen(row->name);
        struct strand *s = &program[strands - 1];
        if (s->n == OPS) fail("too many operations", text);
        struct op *op = &s->ops[s->n++];
        *op = (struct op){ row, 0, 0, 0, if_done };
        long *argument[] = { &op->a, &op->b, &op->c };
        for (int i = 0; i < 3 && *text >= '0' && *text <= '9'; i++) {
            char *end;
            *argument[i] = strtol(text, &end, 10);
            text = end + (*end == '.');
        }
        if (*text && *text != ' ' && *text != '|') fail("what is this", text);
    }
}

/* ---- running natively, many times ---- */

/* All threads of the process group sleep: true natively means that nothing will happen any more. */
/* Whatever group or session they are in: all that come from this process, but for the shell that looks. */
static int all_asleep(void) {
    char command[512];
    snprintf(command, sizeof command,
        "ps -eLo pid=,ppid=,stat= | awk -v own=%d -v sh=$$ '{ up[$1] = $2; if ($3 !~ /^[SZTtD]/) awake[$1] = 1 } "
        "END { for (p in awake) { for (q = p; q > 1 && up[q] != own; ) q = up[q]; if (q > 1 && q != sh) exit 1 } }'",
        getpid());
    return system(command) == 0;
}

/* Ends what is left of a run, in groups and sessions of its own too: this process is the parent of what lost its own. */
static void end_all(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    for (int status; waitpid(-1, &status, WNOHANG) >= 0;) {
        FILE *children = fopen(path, "r");
        for (int child; children && fscanf(children, "%d", &child) == 1;) kill(child, SIGKILL);
        if (children) fclose(children);
        usleep(500);
    }
}

struct seen { char *outcome; int count; };
static struct seen *seen;
static int n_seen;

static void count(const char *outcome) {
    for (int i = 0; i < n_seen; i++)
        if (!strcmp(seen[i].outcome, outcome)) { seen[i].count++; return; }
    seen = realloc(seen, (n_seen + 1) * sizeof *seen);
    seen[n_seen++] = (struct seen){ strdup(outcome), 1 };
}

static void affinity(int cpus) {
    cpu_set_t all, set;
    static cpu_set_t allowed;
    static int known;
    if (!known) sched_getaffinity(0, sizeof allowed, &allowed), known = 1;
    all = allowed;
    CPU_ZERO(&set);
    for (int i = 0, n = 0; i < CPU_SETSIZE && n < cpus; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &set), n++;
    sched_setaffinity(0, sizeof set, &set);
}

/* Stops that a terminal sends. */
static int uses_terminal_stops(void) {
    for (int s = 0; s < strands; s++)
        for (int i = 0; i < program[s].n; i++) {
            struct op *op = &program[s].ops[i];
            if ((op->row->call == do_kill && op->b == SIGTSTP) || (op->row->call == do_stopself && op->a)) return 1;
        }
    return 0;
}

/* As under vsrun: somebody could make the first process go on. Its group has a member whose parent is in another group of the session;
   both are this process's to end. */
static void keep_from_orphaned(void) {
    pid_t group = getpid(), other = fork();
    if (other == 0) {
        if (fork()) _exit(0);
        setpgid(0, 0);
        pid_t member = fork();
        if (member == 0) setpgid(0, group);
        for (;;) pause();
    }
    waitpid(other, NULL, 0);
    // Until it is a member.
    for (int orphaned = 1; orphaned; usleep(200)) {
        pid_t probe = fork();
        if (probe == 0) raise(SIGTSTP), _exit(0);
        int status;
        waitpid(probe, &status, WUNTRACED);
        orphaned = !WIFSTOPPED(status);
        if (!orphaned) kill(probe, SIGKILL), waitpid(probe, &status, 0);
    }
}

static void natively(int runs, uint64_t seed) {
    is_native = 1;
    // As under vsrun, whatever whoever runs this has open: numbers of new descriptors are told.
    close_range(3, ~0U, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    char dir[] = "/tmp/vsrun-native-XXXXXX";
    if (!mkdtemp(dir)) abort();
    char *result = mmap(NULL, sizeof w->outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int hangs = 0;
    for (int i = 0; i < runs && hangs < 6; i++) {
        affinity(i % 3 ? 2 : 1);
        mood = i % 5;
        seed_of_run = random_state = (seed + i) * 0x9E3779B97F4A7C15u + 1;
        result[0] = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            // As under vsrun: it leads a session.
            setsid();
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            // What an earlier run has set of the description is not there either.
            close(0);
            if (open("/dev/null", O_RDONLY)) abort();
            if (uses_terminal_stops()) keep_from_orphaned();
            set_up(dir);
            whole();
            strcpy(result, w->outcome);
            _exit(0);
        }
        int status, pidfd = syscall(SYS_pidfd_open, pid, 0), over = 0;
        /* What neither ends nor sleeps (a thread of libc's that runs in circles) hangs, too: half a minute is enough. */
        for (int looks = 0; !over && looks < 200; looks++) {
            struct pollfd fd = { pidfd, POLLIN, 0 };
            over = poll(&fd, 1, 150) == 1;
            if (!over && all_asleep()) {
                usleep(100000);
                if (poll(&fd, 1, 0) == 1) break;
                if (!all_asleep()) continue;
                /* The first one is looked at longer: on a machine with much to do a process sleeps for no reason of its own. */
                if (!hangs) usleep(1500000);
                if (poll(&fd, 1, 0) == 1) break;
                if (hangs || all_asleep()) break;
            }
        }
        close(pidfd);
        int hung = !over && waitpid(pid, &status, WNOHANG) == 0;
        kill(-pid, SIGKILL);
        if (over || hung) waitpid(pid, &status, 0);
        char text[64];
        if (hung) count("HANG"), hangs++;
        else if (WIFSIGNALED(status)) snprintf(text, sizeof text, "SIGNAL %d", WTERMSIG(status)), count(text);
        else if (result[0]) count(result);
        else snprintf(text, sizeof text, "EXIT %d", WEXITSTATUS(status)), count(text);
        end_all();
        if (made->set) semctl(made->set - 1, 0, IPC_RMID);
        if (made->queue) msgctl(made->queue - 1, IPC_RMID, NULL);
        if (made->segment) shmctl(made->segment - 1, IPC_RMID, NULL);
        made->set = made->queue = made->segment = 0;
    }
    for (int i = 0; i < 2 && (uses("obj*") || uses_page(NAMED)); i++) {
        char name[64];
        snprintf(name, sizeof name, "/%s.%d", dir + 5, i), shm_unlink(name);
    }
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (system(command)) {}
    for (int i = 0; i < n_seen; i++) printf("%d %s\n", seen[i].count, seen[i].outcome);
}

static pid_t first;

static int tell(const char *text) {
    size_t n = strlen(text);
    int fd = outcome ? open(outcome, O_WRONLY | O_APPEND | O_CREAT, 0600) : 1;
    first = 0;
    return write(fd, text, n) != (ssize_t)n;
}

/* The program ends before it comes to its end: its first thread was cancelled. */
static void told_exit(int status, void *arg) {
    (void)arg;
    char text[32];
    snprintf(text, sizeof text, "EXIT %d\n", status);
    if (getpid() == first) tell(text);
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "--then")) return then(argv + 2);
    own_path = argv[0];
    int at = 1, runs = 0;
    uint64_t seed = 1;
    if (argc > at + 1 && !strcmp(argv[at], "--own")) own_memory = 1, at++;
    if (argc > at + 1 && !strcmp(argv[at], "--outcome")) outcome = argv[at + 1], at += 2;
    if (argc > at + 2 && !strcmp(argv[at], "--native")) runs = atoi(argv[at + 1]), seed = atoll(argv[at + 2]), at += 3;
    if (argc != at + 1) fail("usage: driver [--own | --outcome FILE | --native RUNS SEED] PROGRAM", "");
    parse(argv[at]);
    if (runs) {
        natively(runs, seed);
        return 0;
    }
    // The same in each execution, beside the outcomes: names that differ would be other objects each time.
    char dir[PATH_MAX] = "/tmp/vsrun-driver-XXXXXX";
    if (USES("flock", "setlk", "getlk", "lseek", "fread", "fwrite", "pread", "pwrite", "size", "nread", "nwrite", "nseek", "npread", "nsize", "ncut", "own*", "pagein", "ff*", STREAMS, STATE)) {
        if (outcome) snprintf(dir, sizeof dir, "%s.d", outcome);
        if (outcome ? mkdir(dir, 0700) && errno != EEXIST : !mkdtemp(dir)) abort();
    }
    set_up(dir);
    first = getpid();
    on_exit(told_exit, NULL);
    whole();
    strcat(w->outcome, "\n");
    return tell(w->outcome);
}
