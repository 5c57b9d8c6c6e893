/*
 * A thread is cancelled in pthread_cond_wait, which takes the mutex again first.  Buggy: no cleanup
 * handler, so the mutex stays locked.  Fixed: a handler unlocks it.
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int fixed, cleaned;

static void unlock(void *mutex)
{
    cleaned++;
    if (fixed)
        MUST(pthread_mutex_unlock(mutex));
}

static void *waits(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    pthread_cleanup_push(unlock, &m);
    for (;;)
        MUST(pthread_cond_wait(&c, &m));
    pthread_cleanup_pop(1);
    return unused;
}

int main(int argc, char **argv)
{
    void *result = NULL;
    pthread_t t;

    fixed = arg_is(argc, argv, "fixed");
    t = go(waits, NULL);
    MUST(pthread_cancel(t));
    MUST(pthread_join(t, &result));
    assert(result == PTHREAD_CANCELED && cleaned == 1);
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return 0;
}
