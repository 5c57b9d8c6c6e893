/* Two spin locks, taken A-B by one thread and B-A (buggy) or A-B (fixed) by the other. */
#include "t.h"

static pthread_spinlock_t a, b;

static void both(pthread_spinlock_t *first, pthread_spinlock_t *second)
{
    MUST(pthread_spin_lock(first));
    MUST(pthread_spin_lock(second));
    MUST(pthread_spin_unlock(second));
    MUST(pthread_spin_unlock(first));
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
    MUST(pthread_spin_init(&a, PTHREAD_PROCESS_PRIVATE));
    MUST(pthread_spin_init(&b, PTHREAD_PROCESS_PRIVATE));

    pthread_t t1 = go(one, NULL);
    pthread_t t2 = go(other, arg_is(argc, argv, "fixed") ? argv : NULL);

    join(t1);
    join(t2);
    return 0;
}
