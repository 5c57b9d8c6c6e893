/*
 * A robust mutex whose owner ends while it holds it.  Buggy: the next owner does not make it
 * consistent, so that nobody can lock it any more.  Fixed: pthread_mutex_consistent().
 */
#include "t.h"

static pthread_mutex_t m;
static int fixed;

static void *dies(void *unused)
{
    int rc = pthread_mutex_lock(&m);

    if (rc == ENOTRECOVERABLE)
        abort();
    if (rc == EOWNERDEAD && fixed)
        MUST(pthread_mutex_consistent(&m));
    return unused;
}

static void *next(void *unused)
{
    int rc = pthread_mutex_lock(&m);

    if (rc == EOWNERDEAD && fixed)
        MUST(pthread_mutex_consistent(&m));
    else
        assert(rc == 0 || rc == EOWNERDEAD);
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pthread_t t1, t2;
    int rc;

    fixed = arg_is(argc, argv, "fixed");
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(&m, &attr));
    t1 = go(dies, NULL);
    t2 = go(next, NULL);
    join(t1);
    join(t2);
    /* If `next` came first, the death is still to be found here. */
    rc = pthread_mutex_lock(&m);
    assert(rc == 0 || rc == EOWNERDEAD);
    if (rc == EOWNERDEAD)
        MUST(pthread_mutex_consistent(&m));
    MUST(pthread_mutex_unlock(&m));
    return 0;
}
