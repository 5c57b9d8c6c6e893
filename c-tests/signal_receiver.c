/* A signal for a process goes to the first thread if that wants it, unless it is about to take another one: then to a different thread. */
#include "t.h"
#include <signal.h>

static pthread_t first, taker;

static void one(int signal)
{
    (void)signal;
}

static void two(int signal)
{
    (void)signal;
    taker = pthread_self();
}

static void *sends(void *both)
{
    MUST(kill(getpid(), SIGUSR1));
    if (both) MUST(kill(getpid(), SIGUSR2));
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = one};
    pthread_t t;
    first = taker = pthread_self();
    MUST(sigaction(SIGUSR1, &action, NULL));
    action.sa_handler = two;
    MUST(sigaction(SIGUSR2, &action, NULL));
    t = go(sends, arg_is(argc, argv, "one") ? NULL : &first);
    join(t);
    if (arg_is(argc, argv, "seen")) assert(pthread_equal(taker, first));
    return 0;
}
