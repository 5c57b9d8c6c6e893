/* A timer's signal in a process of one thread may come right after the timer was set: before it forks, creates a thread, executes a program, ends.
   "mask", "wait": it comes between two calls, the second of which changes the mask or would take the signal itself.
   "apart": what a thread has waited for is a timer that another one set earlier, so that a timer of its own need not have expired. */
#include "t.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>

static volatile sig_atomic_t rang, between;
static const char *what;

static int is(const char *word)
{
    return strcmp(what, word) == 0;
}

static void handler(int sig)
{
    (void)sig;
    assert(!between);
    if (is("exec") || is("end"))
        abort();
    rang = 1;
}

static void set(void)
{
    struct itimerval value = { .it_value = { 0, 1000 } };
    MUST(setitimer(ITIMER_REAL, &value, NULL));
}

static void *looks(void *unused)
{
    assert(!rang);
    return unused;
}

static void *waits(void *unused)
{
    struct itimerspec value = { .it_value = { 0, 1000000 } };
    sigset_t alarms;
    int sig, timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    uint64_t n;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    MUST(timerfd_settime(timer, 0, &value, NULL));
    MUST(sigwait(&alarms, &sig));
    assert(read(timer, &n, sizeof n) == sizeof n);
    return unused;
}

int main(int argc, char **argv)
{
    sigset_t alarms;
    pthread_t t;
    pid_t child;

    if (argc != 2)
        return 0;
    what = argv[1];
    signal(SIGALRM, handler);
    if (is("apart")) {
        sigemptyset(&alarms);
        sigaddset(&alarms, SIGALRM);
        MUST(pthread_sigmask(SIG_BLOCK, &alarms, NULL));
    }
    set();
    if (is("mask") || is("wait")) {
        sigset_t set;
        struct timespec milli = { 0, 1000000 };
        sigemptyset(&set);
        sigaddset(&set, is("wait") ? SIGALRM : SIGUSR1);
        between = 1;
        if (is("mask"))
            MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
        else
            sigtimedwait(&set, NULL, &milli);
        between = 0;
    }
    if (is("fork")) {
        child = fork();
        if (child == 0)
            _exit(rang);
        int status;
        while (waitpid(child, &status, 0) != child)
            assert(errno == EINTR);
        assert(status == 0);
    }
    if (is("thread") || is("apart")) {
        t = go(is("thread") ? looks : waits, NULL);
        join(t);
    }
    if (is("exec"))
        execl(argv[0], argv[0], "once", "more", (char *)NULL);
    return 0;
}
