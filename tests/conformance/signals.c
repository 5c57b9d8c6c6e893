// Signals: actions, masks, what is pending, whom they can be sent to.
#include "check.h"
#include <setjmp.h>
#include <ucontext.h>

static volatile int caught, code, sender, value_got;
static void *volatile on_stack;

static void note(int signal) {
    caught = signal;
}

static void note_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    caught = signal;
    code = info->si_code;
    sender = info->si_pid;
    value_got = info->si_value.sival_int;
    on_stack = &info;
}

static void actions(void) {
    struct sigaction a = {.sa_handler = note}, old;
    static const int odd[] = {0, -1, 65, 1000, SIGKILL, SIGSTOP};
    for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
        char name[40];
        sprintf(name, "sigaction of %d", odd[i]);
        NAMED(name, sigaction(odd[i], &a, 0));
        sprintf(name, "a look at %d", odd[i]);
        NAMED(name, sigaction(odd[i], 0, &old));
    }
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, 0, 0, 4));
    CHECK(signal(SIGKILL, SIG_IGN) == SIG_ERR ? -1 : 0);
    memset(&a, 0, sizeof a);
    a.sa_sigaction = note_info;
    a.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_RESETHAND;
    sigaddset(&a.sa_mask, SIGUSR2);
    sigaddset(&a.sa_mask, SIGKILL);
    CHECK(sigaction(SIGUSR1, &a, 0));
    CHECK(sigaction(SIGUSR1, 0, &old));
    say("flags %lx, handler %d, mask %d %d", old.sa_flags & 0xf8ffffffL, old.sa_sigaction == note_info,
        sigismember(&old.sa_mask, SIGUSR2), sigismember(&old.sa_mask, SIGKILL));
    CHECK(raise(SIGUSR1));
    say("caught %d, code %d, sender %d", caught, code, sender == getpid());
    CHECK(sigaction(SIGUSR1, 0, &old));
    say("after SA_RESETHAND: flags %lx, default %d", old.sa_flags & 0xf8ffffffL, old.sa_handler == SIG_DFL);
}

static int pending(int signal) {
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, signal);
}

static void block(int signal, int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(how, &set, 0);
}

static void ignored(void) {
    // What is ignored when it comes is lost, blocked or not; what is pending and then ignored is lost too.
    block(SIGUSR1, SIG_BLOCK);
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    say("ignored and blocked, pending: %d", pending(SIGUSR1));
    signal(SIGUSR1, note);
    raise(SIGUSR1);
    say("pending: %d", pending(SIGUSR1));
    signal(SIGUSR1, SIG_IGN);
    say("then ignored: %d", pending(SIGUSR1));
    signal(SIGUSR1, note);
    caught = 0;
    block(SIGUSR1, SIG_UNBLOCK);
    say("caught %d", caught);
    block(SIGCHLD, SIG_BLOCK);
    raise(SIGCHLD);
    say("SIGCHLD by default, pending: %d", pending(SIGCHLD));
    signal(SIGCHLD, SIG_DFL);
    say("after SIG_DFL: %d", pending(SIGCHLD));
    block(SIGCHLD, SIG_UNBLOCK);
    block(SIGURG, SIG_BLOCK);
    kill(getpid(), SIGURG);
    say("SIGURG by default, pending: %d", pending(SIGURG));
    signal(SIGURG, note);
    say("after a handler: %d", pending(SIGURG));
    caught = 0;
    block(SIGURG, SIG_UNBLOCK);
    say("caught %d", caught);
    signal(SIGURG, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
}

static void stops(void) {
    // A continue takes pending stops along, and the other way round.
    block(SIGTSTP, SIG_BLOCK);
    block(SIGCONT, SIG_BLOCK);
    raise(SIGTSTP);
    say("stop pending: %d", pending(SIGTSTP));
    raise(SIGCONT);
    say("stop pending: %d, continue: %d", pending(SIGTSTP), pending(SIGCONT));
    raise(SIGTSTP);
    say("stop pending: %d, continue: %d", pending(SIGTSTP), pending(SIGCONT));
    signal(SIGTSTP, SIG_IGN);
    say("stop pending: %d", pending(SIGTSTP));
    block(SIGTSTP, SIG_UNBLOCK);
    block(SIGCONT, SIG_UNBLOCK);
    signal(SIGTSTP, SIG_DFL);
}

static void sending(void) {
    CHECK(kill(getpid(), 0));
    CHECK(kill(getpid(), 65));
    CHECK(kill(getpid(), -1));
    CHECK(kill(1 << 29, 0));
    CHECK(kill(-(1 << 29), 0));
    CHECK(kill(0, 0));
    CHECK(raise(65));
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), 0));
    CHECK(syscall(SYS_tgkill, getpid(), 1 << 29, 0));
    CHECK(syscall(SYS_tgkill, 1 << 29, gettid(), 0));
    CHECK(syscall(SYS_tgkill, 0, gettid(), 0));
    CHECK(syscall(SYS_tgkill, getpid(), 0, 0));
    CHECK(syscall(SYS_tgkill, -1, gettid(), 0));
    CHECK(syscall(SYS_tkill, gettid(), 0));
    CHECK(syscall(SYS_tkill, 0, 0));
    CHECK(syscall(SYS_tkill, -1, 0));
    CHECK(syscall(SYS_tkill, gettid(), 65));
    NUMBER(pthread_kill(pthread_self(), 0));
    NUMBER(pthread_kill(pthread_self(), 65));
    CHECK(sigqueue(getpid(), 65, (union sigval){0}));
    CHECK(sigqueue(1 << 29, 0, (union sigval){0}));
    CHECK(sigqueue(getpid(), 0, (union sigval){0}));
    siginfo_t info = {.si_code = SI_QUEUE};
    CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), 0, &info));
    CHECK(syscall(SYS_rt_sigqueueinfo, 0, 0, &info));
    CHECK(syscall(SYS_rt_sigqueueinfo, -1, 0, &info));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), 0, 0, &info));
    struct sigaction a = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &a, 0);
    caught = 0;
    CHECK(sigqueue(getpid(), SIGUSR1, (union sigval){77}));
    say("caught %d, code %d, value %d, sender %d", caught, code, value_got, sender == getpid());
    CHECK(kill(getpid(), SIGUSR1));
    say("code %d, sender %d", code, sender == getpid());
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
    say("code %d, sender %d", code, sender == getpid());
    // Signals of real time queue, others do not.
    for (int i = 0; i < 2; i++) {
        int signal = i ? SIGRTMIN + 1 : SIGUSR1, n = 0;
        block(signal, SIG_BLOCK);
        for (int k = 0; k < 3; k++) sigqueue(getpid(), signal, (union sigval){k});
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, signal);
        while (sigtimedwait(&set, &info, &(struct timespec){0, 0}) == signal) {
            say("taken: %d", info.si_value.sival_int);
            n++;
        }
        say("taken %d", n);
        block(signal, SIG_UNBLOCK);
    }
    signal(SIGUSR1, SIG_DFL);
}

// Whom a signal is for is looked up before the signal; that its information is no lie is looked at before both.
static void gone(void) {
    int own = getpid(), child = fork();
    if (child == 0) _exit(0);
    int fd = syscall(SYS_pidfd_open, child, 0);
    siginfo_t info = {.si_code = SI_QUEUE}, lie = {.si_code = SI_USER}, other_lie = {.si_code = SI_TKILL};
    siginfo_t numbered = {.si_code = SI_QUEUE, .si_signo = 999};
    waitid(P_PID, child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    // Over, and not waited for.
    CHECK(kill(child, 0));
    CHECK(kill(child, SIGTERM));
    CHECK(kill(child, 999));
    CHECK(syscall(SYS_tkill, child, 999));
    CHECK(syscall(SYS_tkill, child, 0));
    CHECK(syscall(SYS_pidfd_send_signal, fd, 999, 0, 0));
    CHECK(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0));
    CHECK(syscall(SYS_rt_sigqueueinfo, child, 999, &info));
    CHECK(syscall(SYS_rt_sigqueueinfo, child, 0, &lie));
    waitpid(child, 0, 0);
    CHECK(kill(child, 0));
    CHECK(kill(child, 999));
    CHECK(kill(child, -1));
    CHECK(kill(-child, 999));
    CHECK(kill(-(1 << 29), 999));
    CHECK(kill(INT32_MIN, 999));
    CHECK(kill(INT32_MIN, 0));
    CHECK(kill(0, 999));
    CHECK(kill(-getpgrp(), 999));
    CHECK(kill(own, 999));
    CHECK(syscall(SYS_tkill, child, 999));
    CHECK(syscall(SYS_tgkill, own, child, 999));
    CHECK(syscall(SYS_tgkill, child, own, 999));
    CHECK(syscall(SYS_tgkill, own, own, 999));
    CHECK(syscall(SYS_tgkill, child, own, 0));
    CHECK(syscall(SYS_pidfd_send_signal, fd, 999, 0, 0));
    CHECK(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0));
    CHECK(syscall(SYS_pidfd_send_signal, fd, 999, &numbered, 0));
    CHECK(syscall(SYS_rt_sigqueueinfo, child, 999, &info));
    CHECK(syscall(SYS_rt_sigqueueinfo, child, 0, &lie));
    CHECK(syscall(SYS_rt_sigqueueinfo, -5, 0, &info));
    CHECK(syscall(SYS_rt_sigqueueinfo, -5, 0, &lie));
    CHECK(syscall(SYS_rt_sigqueueinfo, 0, 0, &other_lie));
    CHECK(syscall(SYS_rt_sigqueueinfo, own, 999, &info));
    CHECK(syscall(SYS_rt_sigqueueinfo, own, 0, &lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, own, child, 0, &info));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, own, child, 0, &lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, own, child, 0, &other_lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, own, own, 999, &lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, own, own, 0, &lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, own, 0, 0, &lie));
    close(fd);
}

static void *lies(void *unused) {
    // Its own id is the thread's, not that of its process.
    siginfo_t lie = {.si_code = SI_USER};
    CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), 0, &lie));
    CHECK(syscall(SYS_rt_sigqueueinfo, gettid(), 0, &lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), 0, &lie));
    CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), 0, &lie));
    return unused;
}

static void *other(void *at) {
    *(pid_t *)at = gettid();
    pthread_barrier_wait((pthread_barrier_t *)((char *)at + 64));
    pthread_barrier_wait((pthread_barrier_t *)((char *)at + 64));
    return 0;
}

static void of_threads(void) {
    static char room[64 + sizeof(pthread_barrier_t)] __attribute__((aligned(64)));
    pthread_barrier_t *barrier = (void *)(room + 64);
    pthread_barrier_init(barrier, 0, 2);
    pthread_t t;
    pthread_create(&t, 0, other, room);
    pthread_barrier_wait(barrier);
    pid_t tid = *(pid_t *)room;
    // The id of a thread names its process for kill, not for tgkill as a process.
    CHECK(kill(tid, 0));
    CHECK(syscall(SYS_tgkill, getpid(), tid, 0));
    CHECK(syscall(SYS_tgkill, tid, tid, 0));
    CHECK(syscall(SYS_tkill, tid, 0));
    CHECK(getpgid(tid) == getpgid(0));
    CHECK(getsid(tid) == getsid(0));
    CHECK(sched_getscheduler(tid));
    CHECK(getpriority(PRIO_PROCESS, tid));
    NUMBER(pthread_kill(t, 0));
    pthread_barrier_wait(barrier);
    pthread_join(t, 0);
    pthread_create(&t, 0, lies, 0);
    pthread_join(t, 0);
}

static void masks(void) {
    sigset_t set, old;
    sigfillset(&set);
    CHECK(sigprocmask(99, &set, 0));
    CHECK(sigprocmask(99, 0, &old));
    CHECK(sigprocmask(SIG_SETMASK, &set, &old));
    sigprocmask(SIG_SETMASK, &old, &set);
    say("KILL %d STOP %d CHLD %d CANCEL %d", sigismember(&set, SIGKILL), sigismember(&set, SIGSTOP),
        sigismember(&set, SIGCHLD), ((unsigned char *)&set)[3] >> 7);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, 0, 4));
    CHECK(syscall(SYS_rt_sigpending, &set, 16));
    CHECK(syscall(SYS_rt_sigpending, &set, 4));
    CHECK(syscall(SYS_rt_sigsuspend, &set, 4));
    CHECK(syscall(SYS_rt_sigtimedwait, &set, 0, 0, 4));
    // Those that cannot be blocked are left out by the kernel.
    unsigned long all = -1L, was, now;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &was, 8);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &was, &now, 8);
    say("all: %lx", now);
}

static void stacks(void) {
    static char stack[1 << 16];
    stack_t s = {.ss_sp = stack, .ss_size = 100}, old;
    CHECK(sigaltstack(&s, 0));
    s = (stack_t){.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = 99};
    CHECK(sigaltstack(&s, 0));
    s.ss_flags = 0;
    CHECK(sigaltstack(&s, &old));
    say("flags %d, size %zu", old.ss_flags, old.ss_size);
    CHECK(sigaltstack(0, &old));
    say("flags %d, size %zu", old.ss_flags, old.ss_size);
    struct sigaction a = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &a, 0);
    raise(SIGUSR1);
    say("on it: %d", (char *)on_stack > stack && (char *)on_stack < stack + sizeof stack);
    s.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&s, 0));
    raise(SIGUSR1);
    say("on it: %d", (char *)on_stack > stack && (char *)on_stack < stack + sizeof stack);
    signal(SIGUSR1, SIG_DFL);
}

static void on_system_call(int signal, siginfo_t *info, void *context) {
    (void)context;
    caught = signal;
    code = info->si_code;
}

static void system_calls(void) {
    struct sigaction a = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO}, old;
    CHECK(sigaction(SIGSYS, &a, 0));
    caught = 0;
    CHECK(raise(SIGSYS));
    say("caught %d, code %d", caught, code);
    caught = 0;
    CHECK(sigqueue(getpid(), SIGSYS, (union sigval){1}));
    say("caught %d, code %d", caught, code);
    CHECK(sigaction(SIGSYS, 0, &old));
    say("handler %d", old.sa_sigaction == on_system_call);
    CHECK(signal(SIGSYS, SIG_IGN) == SIG_ERR ? -1 : 0);
    CHECK(raise(SIGSYS));
    CHECK(signal(SIGSYS, SIG_DFL) == SIG_IGN);
    CHECK(syscall(9999));
}

static sigjmp_buf back;

static void jump(int signal) {
    siglongjmp(back, signal);
}

static void faults(void) {
    struct sigaction a = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO};
    a.sa_handler = jump;
    a.sa_flags = 0;
    sigaction(SIGSEGV, &a, 0);
    sigaction(SIGBUS, &a, 0);
    sigaction(SIGFPE, &a, 0);
    int signal = sigsetjmp(back, 1);
    if (signal == 0) *(volatile char *)8 = 1;
    say("at a bad address: %d", signal);
    int p[2];
    pipe(p);
    // A call gives an error there, handler or not.
    CHECK(write(p[1], (char *)8, 1));
    char name[] = "/tmp/vsrun-conformance-XXXXXX";
    int f = mkstemp(name);
    unlink(name);
    char *beyond = mmap(0, 4096, PROT_READ, MAP_SHARED, f, 0);
    signal = sigsetjmp(back, 1);
    if (signal == 0) say("read %d", *(volatile char *)beyond);
    say("beyond the end of a file: %d", signal);
    CHECK(write(p[1], beyond, 1));
    signal = sigsetjmp(back, 1);
    if (signal == 0) say("lock %d", pthread_mutex_lock((pthread_mutex_t *)8));
    say("a lock at a bad address: %d", signal);
    signal = sigsetjmp(back, 1);
    if (signal == 0) say("wait %d", sem_wait((sem_t *)8));
    say("a semaphore at a bad address: %d", signal);
    signal = sigsetjmp(back, 1);
    volatile struct timespec *bad = (void *)8;
    if (signal == 0) say("time %d", clock_gettime(CLOCK_MONOTONIC, (struct timespec *)bad));
    say("clock_gettime of libc at a bad address: %d", signal);
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, bad));
    CHECK(write(p[1], (char *)8, 1));
    close(p[0]);
    close(p[1]);
    close(f);
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, 0);
    sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL}, 0);
    sigaction(SIGFPE, &(struct sigaction){.sa_handler = SIG_DFL}, 0);
}

static const struct group groups[] = {
    {"actions", actions}, {"ignored", ignored}, {"stops", stops},   {"sending", sending},
    {"gone", gone}, {"of_threads", of_threads}, {"masks", masks}, {"stacks", stacks}, {"system_calls", system_calls},
    {"faults", faults},   {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
