/*
 * Process-shared robust mutexes with priority inheritance. A process ends while it holds one; who gets it next is told so,
 * declares it consistent and gives it back.
 * buggy: two processes lock a pair of them in crossing order.
 */
#include "t.h"

static pthread_mutex_t *pair;
static int crossed;

static void take(int which)
{
    int result = pthread_mutex_lock(&pair[which]);
    if (result == EOWNERDEAD)
        result = pthread_mutex_consistent(&pair[which]);
    MUST(result);
}

static void dies(void)
{
    take(crossed ? 1 : 0);
    take(crossed ? 0 : 1);
    /* Both are left locked. */
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    crossed = arg_is(argc, argv, "buggy");
    pair = shared(2 * sizeof *pair);
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    for (int i = 0; i < 2; i++)
        MUST(pthread_mutex_init(&pair[i], &attr));
    pid_t pid = fork_run(dies);
    take(0);
    take(1);
    MUST(pthread_mutex_unlock(&pair[1]));
    MUST(pthread_mutex_unlock(&pair[0]));
    assert(reap(pid) == 0);
    for (int i = 0; i < 2; i++) {
        int result = pthread_mutex_trylock(&pair[i]);
        assert(result == 0 || result == EOWNERDEAD);
    }
    return 0;
}
