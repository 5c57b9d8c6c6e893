/* abort() runs a handler of SIGABRT first, also where the signal is blocked: one may jump out of it (jumps), or end the process (exits).
 * Returns: the process is aborted after that. */
#include <setjmp.h>
#include <signal.h>

#include "t.h"

static sigjmp_buf out;
static sem_t handled;
static int jumps, exits;

static void handler(int signal)
{
    (void)signal;
    sem_post(&handled);
    if (jumps)
        siglongjmp(out, 1);
    if (exits)
        _exit(0);
}

static void *waits(void *arg)
{
    (void)arg;
    MUST(sem_wait(&handled));
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    pthread_t waiter;
    sigset_t all;

    jumps = arg_is(argc, argv, "jumps");
    exits = arg_is(argc, argv, "exits");
    MUST(sem_init(&handled, 0, 0));
    MUST(sigaction(SIGABRT, &action, NULL));
    waiter = go(waits, NULL);
    sigfillset(&all);
    MUST(pthread_sigmask(SIG_BLOCK, &all, NULL));
    if (sigsetjmp(out, 1) == 0)
        abort();
    MUST(pthread_join(waiter, NULL));
    return 0;
}
