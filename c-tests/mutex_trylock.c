/* Trylock to avoid a deadlock; the buggy variant gives up without releasing what it has. */
#include "t.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int fixed;

static void *one(void *unused)
{
    MUST(pthread_mutex_lock(&a));
    MUST(pthread_mutex_lock(&b));
    MUST(pthread_mutex_unlock(&b));
    MUST(pthread_mutex_unlock(&a));
    return unused;
}

static void *other(void *unused)
{
    int rc;

    MUST(pthread_mutex_lock(&b));
    rc = pthread_mutex_trylock(&a);
    assert(rc == 0 || rc == EBUSY);
    if (rc == 0)
        MUST(pthread_mutex_unlock(&a));
    if (rc == 0 || fixed)
        MUST(pthread_mutex_unlock(&b));
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
