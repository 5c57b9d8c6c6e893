/* A thread that takes all signals with sigwaitinfo; values sent by sigqueue come in order, a number for each. */
#include <signal.h>

#include "t.h"

static sigset_t set, values;
static int sum;

static void *waiter(void *arg)
{
    siginfo_t info;
    (void)arg;
    for (int i = 0; i < 2; i++) {
        if (sigwaitinfo(&values, &info) != SIGRTMIN || info.si_code != SI_QUEUE || info.si_pid <= 0)
            abort();
        sum = 10 * sum + info.si_value.sival_int;
    }
    int signal;
    MUST(sigwait(&set, &signal));
    if (signal != SIGTERM)
        abort();
    return NULL;
}

static void child(void)
{
    union sigval one = {.sival_int = 1}, two = {.sival_int = 2};
    MUST(sigqueue(getppid(), SIGRTMIN, one));
    MUST(sigqueue(getppid(), SIGRTMIN, two));
}

int main(void)
{
    struct timespec zero = {0, 0};
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    values = set;
    sigaddset(&set, SIGTERM);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    if (sigtimedwait(&set, NULL, &zero) != -1 || errno != EAGAIN)
        abort();
    pthread_t t = go(waiter, NULL);
    pid_t pid = fork_run(child);
    reap(pid);
    MUST(kill(getpid(), SIGTERM));
    join(t);
    if (sum != 12)
        abort();
    return 0;
}
