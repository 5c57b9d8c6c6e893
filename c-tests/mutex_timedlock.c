/*
 * A timed lock that must run into its timeout in one order: the owner of the mutex waits for a
 * semaphore that only the other thread posts.  Buggy: the timeout was thought impossible.
 * Fixed: it is handled.
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t s;
static int fixed;

static void *owner(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    MUST(sem_wait(&s));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *timed(void *unused)
{
    struct timespec limit = in_ms(CLOCK_REALTIME, 50);
    int rc = pthread_mutex_timedlock(&m, &limit);

    assert(rc == 0 || rc == ETIMEDOUT);
    assert(rc == 0 || fixed);
    MUST(sem_post(&s));
    if (rc == 0)
        MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    MUST(sem_init(&s, 0, 0));
    t1 = go(owner, NULL);
    t2 = go(timed, NULL);
    join(t1);
    join(t2);
    return 0;
}
