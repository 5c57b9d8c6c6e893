/* pthread_tryjoin_np, pthread_timedjoin_np, pthread_clockjoin_np.  Buggy: thinks that the thread has ended already. */
#include "t.h"

static sem_t s;

static void *works(void *unused)
{
    (void)unused;
    MUST(sem_wait(&s));
    return &s;
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed"), rc;
    struct timespec limit;
    void *result = NULL;
    pthread_t t;

    MUST(sem_init(&s, 0, 0));
    t = go(works, NULL);
    assert(pthread_tryjoin_np(t, &result) == EBUSY);
    limit = in_ms(CLOCK_REALTIME, 20);
    assert(pthread_timedjoin_np(t, &result, &limit) == ETIMEDOUT);
    limit = in_ms(CLOCK_MONOTONIC, 20);
    assert(pthread_clockjoin_np(t, &result, CLOCK_MONOTONIC, &limit) == ETIMEDOUT);
    MUST(sem_post(&s));
    rc = pthread_tryjoin_np(t, &result);
    assert(rc == 0 || (fixed && rc == EBUSY));
    if (rc != 0)
        MUST(pthread_join(t, &result));
    assert(result == &s);
    return 0;
}
