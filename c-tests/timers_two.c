/* Two timers, of which the first to fire has the higher signal: it may be the only one that has fired when somebody takes a signal, and both may have. */
#include "t.h"
#include <signal.h>
#include <sys/signalfd.h>

static const char *what;
static sigset_t set;
static int seen;

static int is(const char *word)
{
    return strcmp(what, word) == 0;
}

static void handler(int sig)
{
    seen = 10 * seen + (sig == SIGUSR2 ? 1 : 2);
}

static void arm(int sig, long ns)
{
    timer_t timer;
    MUST(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig }, &timer));
    MUST(timer_settime(timer, 0, &(struct itimerspec){ .it_value = { 0, ns } }, NULL));
}

static void *waits(void *unused)
{
    seen = sigwaitinfo(&set, NULL);
    return unused;
}

/* What is found first, or the handlers that have run, in their order. */
static int first(void)
{
    struct signalfd_siginfo info;
    sigset_t mask;
    if (is("signalfd")) {
        int fd = signalfd(-1, &set, 0);
        MUST(read(fd, &info, sizeof info) != sizeof info);
        return info.ssi_signo;
    }
    if (is("suspend")) {
        sigfillset(&mask);
        sigdelset(&mask, SIGUSR1);
        sigdelset(&mask, SIGUSR2);
        sigsuspend(&mask);
        return seen;
    }
    if (is("thread")) {
        join(go(waits, NULL));
        return seen;
    }
    if (is("timeout"))
        return sigtimedwait(&set, NULL, &(struct timespec){ 0, 300000 });
    if (is("late"))
        MUST(nanosleep(&(struct timespec){ 0, 1500000 }, NULL));
    return sigwaitinfo(&set, NULL);
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "";
    int refused = argc > 2 ? atoi(argv[2]) : 0;
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    arm(SIGUSR2, 500000);
    arm(SIGUSR1, is("same") ? 500000 : 900000);
    int found = first();
    assert(found != refused);
    if (is("suspend"))
        assert(found == 1 || found == 12);
    else if (is("late"))
        assert(found == SIGUSR1);
    else if (is("timeout"))
        assert(found == -1 || found == SIGUSR1 || found == SIGUSR2);
    else
        assert(found == SIGUSR1 || found == SIGUSR2);
    return 0;
}
