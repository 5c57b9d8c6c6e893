/* All signals are blocked in all threads, and a blocked one that is pending stays so until it is asked for. */
#include "t.h"
#include <signal.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *work(void *unused)
{
    sigset_t all, now;

    sigfillset(&all);
    MUST(pthread_sigmask(SIG_SETMASK, &all, NULL));
    MUST(pthread_sigmask(SIG_SETMASK, NULL, &now));
    assert(sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGSYS) == 1);
    MUST(pthread_mutex_lock(&m));
    count++;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(void)
{
    sigset_t all, pending;
    pthread_t t[3];
    int got = 0;

    sigfillset(&all);
    MUST(sigprocmask(SIG_SETMASK, &all, NULL));
    for (int i = 0; i < 3; i++)
        t[i] = go(work, NULL);
    work(NULL);
    for (int i = 0; i < 3; i++)
        join(t[i]);
    MUST(kill(getpid(), SIGUSR1));
    MUST(sigpending(&pending));
    assert(sigismember(&pending, SIGUSR1) == 1);
    sigemptyset(&pending);
    sigaddset(&pending, SIGUSR1);
    MUST(sigwait(&pending, &got));
    printf("%d threads with all signals blocked, got %s\n", count, strsignal(got));
    return 0;
}
