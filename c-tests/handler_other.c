/* Two signals for a process of two threads. While a handler runs its thread blocks them, so that the other thread takes the second one; that there is no
   operation in the handler does not matter. "fixed": the other thread blocks them, too. */
#include "t.h"
#include <signal.h>

static pthread_t first;
static sem_t begin;
static int fixed, by_other;

static void handler(int signal)
{
    by_other |= !pthread_equal(pthread_self(), first);
}

static void *sends(void *unused)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (fixed)
        MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    MUST(sem_wait(&begin));
    MUST(kill(getpid(), SIGUSR1));
    MUST(kill(getpid(), SIGUSR1));
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    first = pthread_self();
    fixed = arg_is(argc, argv, "fixed");
    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(sem_init(&begin, 0, 0));
    pthread_t t = go(sends, NULL);
    MUST(sem_post(&begin));
    join(t);
    assert(!by_other);
    return 0;
}
