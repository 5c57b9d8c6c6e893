/* A recursive mutex, taken twice and released once (buggy) or twice (fixed) before the end of its owner. */
#include "t.h"

static pthread_mutex_t m;
static int fixed;

static void *owner(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    if (fixed)
        MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *other(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    MUST(pthread_mutex_init(&m, &attr));
    t1 = go(owner, NULL);
    t2 = go(other, NULL);
    join(t1);
    join(t2);
    return 0;
}
