/* A lost wake-up: buggy waits without a predicate, so a signal that came before is lost. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, fixed;

static void *waiter(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    if (!fixed)
        MUST(pthread_cond_wait(&c, &m));
    while (!ready)
        MUST(pthread_cond_wait(&c, &m));
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
