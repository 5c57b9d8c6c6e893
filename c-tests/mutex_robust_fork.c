/*
 * A process-shared mutex in shared memory; a child dies while it holds it.
 * Buggy: an ordinary mutex.  Fixed: a robust one, made consistent by who finds it.
 */
#include "t.h"

static pthread_mutex_t *m;
static int fixed;

static void dies(void)
{
    int rc = pthread_mutex_lock(m);

    if (rc == EOWNERDEAD)
        MUST(pthread_mutex_consistent(m));
    else
        MUST(rc);
}

static void works(void)
{
    int rc = pthread_mutex_lock(m);

    if (rc == EOWNERDEAD)
        MUST(pthread_mutex_consistent(m));
    else
        MUST(rc);
    MUST(pthread_mutex_unlock(m));
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pid_t child;

    fixed = arg_is(argc, argv, "fixed");
    m = shared(sizeof *m);
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    if (fixed)
        MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(m, &attr));
    child = fork_run(dies);
    works();
    assert(reap(child) == 0);
    return 0;
}
