/* A thread that just begins has all signals blocked: one for its process may find it so, and then another thread takes it. */
#include "t.h"
#include <signal.h>

static int ends[2], fixed;

static void handler(int signal)
{
    (void)signal;
}

static void *reader(void *arg)
{
    char byte;
    (void)arg;
    return (void *)(intptr_t)(read(ends[0], &byte, 1) == 1);
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = handler};
    pthread_t first, second;
    void *result;
    sigset_t set;
    fixed = arg_is(argc, argv, "fixed");
    act.sa_flags = fixed ? SA_RESTART : 0;
    MUST(pipe(ends));
    MUST(sigaction(SIGUSR1, &act, NULL));
    first = go(reader, NULL);
    second = go(reader, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    MUST(kill(getpid(), SIGUSR1));
    if (write(ends[1], "xx", 2) != 2) abort();
    MUST(pthread_join(first, &result));
    if (fixed) assert(result);
    MUST(pthread_join(second, &result));
    assert(result);
    return 0;
}
