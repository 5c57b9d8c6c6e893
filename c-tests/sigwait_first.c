/* Two threads that may take a signal for the process: the kernel chooses one that does not block it, but whoever asks with sigwait before
 * that one has noticed takes it. */
#include <signal.h>

#include "t.h"

static sem_t done;
static volatile int handled;

static void note(int signal)
{
    (void)signal;
    handled++;
}

static void *asks(void *arg)
{
    struct timespec zero = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    MUST(kill(getpid(), SIGUSR1));
    *(int *)arg = sigtimedwait(&set, NULL, &zero);
    MUST(sem_post(&done));
    return NULL;
}

int main(int argc, char **argv)
{
    int got = 0;
    sigset_t set;
    signal(SIGUSR1, note);
    sem_init(&done, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (arg_is(argc, argv, "fixed"))
        MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    pthread_t t = go(asks, &got);
    while (sem_wait(&done) != 0)
        ;
    join(t);
    if (arg_is(argc, argv, "handled"))
        assert(handled == 0);
    else if (arg_is(argc, argv, "fixed"))
        assert(got == SIGUSR1 && handled == 0);
    else
        assert(got != SIGUSR1);
    if (handled + (got == SIGUSR1) != 1)
        abort();
    return 0;
}
