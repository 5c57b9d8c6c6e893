/* A signal for the process comes while two threads block it, and each lets it through for a while: who takes it? Buggy: that is taken to
 * be the main thread, to which it was sent first. Fixed: only that one ever lets it through. */
#include <signal.h>

#include "t.h"

static __thread int who;
static volatile sig_atomic_t taker;
static int both;

static void handler(int signal)
{
    (void)signal;
    taker = who;
}

static void *lets_through(void *arg)
{
    sigset_t set;

    (void)arg;
    who = 2;
    if (!both)
        return NULL;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    pthread_t other;
    sigset_t set;

    both = arg_is(argc, argv, "buggy");
    who = 1;
    MUST(sigaction(SIGUSR1, &action, NULL));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    other = go(lets_through, NULL);
    MUST(kill(getpid(), SIGUSR1));
    MUST(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
    MUST(pthread_join(other, NULL));
    assert(taker == 1);
    return 0;
}
