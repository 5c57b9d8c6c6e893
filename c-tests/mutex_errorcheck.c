/*
 * An error-checking mutex.  Buggy: unlocks also when the trylock before it failed, which is EPERM if
 * the other thread is the owner.  Fixed: looks at the result, and at EDEADLK and EPERM.
 */
#include "t.h"

static pthread_mutex_t m;
static int fixed;

static void *holder(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    if (fixed)
        assert(pthread_mutex_lock(&m) == EDEADLK);
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *trier(void *unused)
{
    int got = pthread_mutex_trylock(&m) == 0;

    if (!fixed)
        assert(pthread_mutex_unlock(&m) == 0);
    else
        assert(pthread_mutex_unlock(&m) == (got ? 0 : EPERM));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    MUST(pthread_mutex_init(&m, &attr));
    t1 = go(holder, NULL);
    t2 = go(trier, NULL);
    join(t1);
    join(t2);
    return 0;
}
