/* RLIMIT_SIGPENDING: beyond it signals with data of their own are refused, others come without saying who has sent them. */
#include "t.h"
#include <signal.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit limit;
    union sigval value = {.sival_int = 7};
    siginfo_t info;
    sigset_t set;
    timer_t timer;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGRTMIN + 1);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    MUST(getrlimit(RLIMIT_SIGPENDING, &limit));
    limit.rlim_cur = 0;
    MUST(setrlimit(RLIMIT_SIGPENDING, &limit));
    assert(sigqueue(getpid(), SIGRTMIN, value) < 0 && errno == EAGAIN);
    assert(timer_create(CLOCK_MONOTONIC, NULL, &timer) < 0 && errno == EAGAIN);
    MUST(kill(getpid(), SIGRTMIN + 1));
    MUST(sigqueue(getpid(), SIGUSR1, value));
    MUST(kill(getpid(), SIGUSR2));
    MUST(kill(getpid(), 0));
    assert(sigwaitinfo(&set, &info) == SIGUSR1 && info.si_code == SI_USER && info.si_pid == 0);
    assert(sigwaitinfo(&set, &info) == SIGUSR2 && info.si_pid == getpid());
    assert(sigwaitinfo(&set, &info) == SIGRTMIN + 1 && info.si_code == SI_USER && info.si_pid == 0);
    assert(sigtimedwait(&set, &info, &(struct timespec){0, 0}) < 0 && errno == EAGAIN);
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_SIGPENDING, &limit));
    MUST(sigqueue(getpid(), SIGRTMIN, value));
    MUST(sigqueue(getpid(), SIGRTMIN, value));
    assert(sigwaitinfo(&set, &info) == SIGRTMIN && info.si_value.sival_int == 7);
    assert(sigwaitinfo(&set, &info) == SIGRTMIN);
    return 0;
}
