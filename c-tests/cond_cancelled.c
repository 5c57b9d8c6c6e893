/*
 * A waiter that is asked to end after it has been signalled: it may be struck before it notices.  cond_cancelled VARIANT
 *   signal, broadcast, timed   its cleanup handler is thought to find nothing to be done
 *   entered   it is asked to end before it waits, and the mutex is thought not to be released then
 *   handed    another waiter gets the wake-up of the one that is cancelled
 */
#include <time.h>

#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t asked;
static int todo, found, seen, timed;

static void leaves(void *unused)
{
    (void)unused;
    found = todo;
    MUST(pthread_mutex_unlock(&m));
}

static void *waits(void *arg)
{
    struct timespec late;
    clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 3600;
    MUST(pthread_mutex_lock(&m));
    pthread_cleanup_push(leaves, NULL);
    while (!todo)
        timed ? pthread_cond_timedwait(&c, &m, &late) : pthread_cond_wait(&c, &m);
    todo--;
    pthread_cleanup_pop(0);
    MUST(pthread_mutex_unlock(&m));
    return arg;
}

static void saw(void *before)
{
    assert(seen == *(int *)before);
    MUST(pthread_mutex_unlock(&m));
}

static void *enters(void *arg)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_wait(&asked);
    MUST(pthread_mutex_lock(&m));
    before = seen;
    pthread_cleanup_push(saw, &before);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    for (;;)
        pthread_cond_wait(&c, &m);
    pthread_cleanup_pop(0);
    return arg;
}

static void gives(int all)
{
    MUST(pthread_mutex_lock(&m));
    todo = 1;
    MUST(all ? pthread_cond_broadcast(&c) : pthread_cond_signal(&c));
    MUST(pthread_mutex_unlock(&m));
}

int main(int argc, char **argv)
{
    void *result, *other;
    pthread_t t, u;
    MUST(sem_init(&asked, 0, 0));
    if (arg_is(argc, argv, "entered")) {
        t = go(enters, NULL);
        MUST(pthread_cancel(t));
        MUST(sem_post(&asked));
        MUST(pthread_mutex_lock(&m));
        seen = 1;
        MUST(pthread_mutex_unlock(&m));
        join(t);
        return 0;
    }
    timed = arg_is(argc, argv, "timed");
    t = go(waits, NULL);
    if (arg_is(argc, argv, "handed")) {
        u = go(waits, NULL);
        gives(0);
        MUST(pthread_cancel(t));
        MUST(pthread_join(t, &result));
        if (result != PTHREAD_CANCELED)
            gives(0);
        MUST(pthread_join(u, &other));
        assert(other != PTHREAD_CANCELED && !todo);
        return 0;
    }
    gives(arg_is(argc, argv, "broadcast"));
    MUST(pthread_cancel(t));
    MUST(pthread_join(t, &result));
    assert(result != PTHREAD_CANCELED || !found);
    return 0;
}
