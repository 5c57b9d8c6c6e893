/* pthread_once; the routine takes a mutex, which (buggy) the other thread holds while it calls it. */
#include "t.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int fixed, made;

static void make(void)
{
    MUST(pthread_mutex_lock(&m));
    made++;
    MUST(pthread_mutex_unlock(&m));
}

static void *one(void *unused)
{
    MUST(pthread_once(&once, make));
    assert(made == 1);
    return unused;
}

static void *other(void *unused)
{
    if (fixed)
        MUST(pthread_once(&once, make));
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_once(&once, make));
    assert(made == 1);
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    t1 = go(one, NULL);
    t2 = go(other, NULL);
    join(t1);
    join(t2);
    return 0;
}
