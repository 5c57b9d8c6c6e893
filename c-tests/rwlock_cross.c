/* Two read-write locks, each read by one thread and then written by the other, in crossing (buggy) or equal (fixed) order. */
#include "t.h"

static pthread_rwlock_t a = PTHREAD_RWLOCK_INITIALIZER, b = PTHREAD_RWLOCK_INITIALIZER;
static int fixed;

static void *one(void *unused)
{
    MUST(pthread_rwlock_rdlock(&a));
    MUST(pthread_rwlock_wrlock(&b));
    MUST(pthread_rwlock_unlock(&b));
    MUST(pthread_rwlock_unlock(&a));
    return unused;
}

static void *other(void *unused)
{
    if (fixed)
        return one(unused);
    MUST(pthread_rwlock_rdlock(&b));
    MUST(pthread_rwlock_wrlock(&a));
    MUST(pthread_rwlock_unlock(&a));
    MUST(pthread_rwlock_unlock(&b));
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
