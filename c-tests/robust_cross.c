/* Two processes take two mutexes in crossing order, and one of them is killed. Fixed: the mutexes are robust, so that the other goes on.
 * Buggy: they are not. */
#include <signal.h>

#include "t.h"

static pthread_mutex_t *m;

static void take(int i)
{
    int rc = pthread_mutex_lock(&m[i]);

    assert(rc == 0 || rc == EOWNERDEAD);
    if (rc == EOWNERDEAD)
        MUST(pthread_mutex_consistent(&m[i]));
}

static void both(int first)
{
    take(first);
    take(!first);
    MUST(pthread_mutex_unlock(&m[!first]));
    MUST(pthread_mutex_unlock(&m[first]));
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pid_t child[2];

    m = shared(2 * sizeof *m);
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    if (!arg_is(argc, argv, "buggy"))
        MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    for (int i = 0; i < 2; i++)
        MUST(pthread_mutex_init(&m[i], &attr));
    for (int i = 0; i < 2; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            both(i);
            _exit(0);
        }
    }
    MUST(kill(child[0], SIGKILL));
    reap(child[0]);
    assert(reap(child[1]) == 0);
    return 0;
}
