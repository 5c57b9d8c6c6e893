/* A condition variable is destroyed and set up again while a thread that has been let go waits for the mutex: right. "early": while it waits. */
#include "t.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready, timed, n;

static void *waits(void *unused)
{
    struct timespec past = {1, 0};
    MUST(pthread_mutex_lock(&lock));
    if (timed)
        pthread_cond_timedwait(&cond, &lock, &past);
    while (!timed && !ready)
        MUST(pthread_cond_wait(&cond, &lock));
    n++;
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void *renews(void *early)
{
    MUST(pthread_mutex_lock(&lock));
    ready = 1;
    if (!early)
        MUST(pthread_cond_signal(&cond));
    if (!early)
        MUST(pthread_cond_destroy(&cond));
    MUST(pthread_cond_init(&cond, NULL));
    n += 10;
    MUST(pthread_mutex_unlock(&lock));
    return NULL;
}

int main(int argc, char **argv)
{
    timed = arg_is(argc, argv, "timed");
    pthread_t one = go(waits, NULL), other = go(renews, arg_is(argc, argv, "early") ? &n : NULL);
    join(one);
    join(other);
    assert(n == 11);
    return 0;
}
