/*
 * A timed wait.  Buggy: no predicate, so after a signal that came too early only the timeout is
 * left, which was thought impossible.  Fixed: a predicate; and a wait that must time out does.
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, fixed;

static void *waiter(void *unused)
{
    struct timespec limit = in_ms(CLOCK_REALTIME, 1000);
    int rc = 0;

    MUST(pthread_mutex_lock(&m));
    while (rc == 0 && !(fixed && ready)) {
        rc = pthread_cond_timedwait(&c, &m, &limit);
        if (!fixed)
            break;
    }
    assert(rc == 0 && ready);
    if (fixed) {
        limit = in_ms(CLOCK_REALTIME, 20);
        assert(pthread_cond_timedwait(&c, &m, &limit) == ETIMEDOUT);
        limit = in_ms(CLOCK_MONOTONIC, 20);
        assert(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &limit) == ETIMEDOUT);
    }
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *signaller(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    ready = 1;
    MUST(pthread_cond_signal(&c));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    t1 = go(waiter, NULL);
    t2 = go(signaller, NULL);
    join(t1);
    join(t2);
    return 0;
}
