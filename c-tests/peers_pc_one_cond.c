/*
 * Two producers and two consumers, one place, one condition variable for both sides.  Buggy: a
 * signal may wake somebody of the same side, who waits again.  Fixed: broadcast.
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int full, fixed;

static void change(int to)
{
    MUST(pthread_mutex_lock(&m));
    while (full == to)
        MUST(pthread_cond_wait(&c, &m));
    full = to;
    if (fixed)
        MUST(pthread_cond_broadcast(&c));
    else
        MUST(pthread_cond_signal(&c));
    MUST(pthread_mutex_unlock(&m));
}

static void *producer(void *unused)
{
    change(1);
    return unused;
}

static void *consumer(void *unused)
{
    change(0);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t[3];

    fixed = arg_is(argc, argv, "fixed");
    t[0] = go(consumer, NULL);
    t[1] = go(consumer, NULL);
    t[2] = go(producer, NULL);
    change(1); /* the main thread is the other producer */
    for (int i = 0; i < 3; i++)
        join(t[i]);
    assert(!full);
    return 0;
}
