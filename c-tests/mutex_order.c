/* Two mutexes, taken A-B by one thread and B-A (buggy) or A-B (fixed) by the other. */
#include "t.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    MUST(pthread_mutex_lock(first));
    MUST(pthread_mutex_lock(second));
    MUST(pthread_mutex_unlock(second));
    MUST(pthread_mutex_unlock(first));
}

static void *one(void *unused)
{
    both(&a, &b);
    return unused;
}

static void *other(void *fixed)
{
    if (fixed)
        both(&a, &b);
    else
        both(&b, &a);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t1 = go(one, NULL);
    pthread_t t2 = go(other, arg_is(argc, argv, "fixed") ? argv : NULL);

    join(t1);
    join(t2);
    return 0;
}
