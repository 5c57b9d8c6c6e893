/*
 * Who gets the mutex after a wake-up is not settled by the wake-up.
 *   steal  a third thread takes the item before the woken one (which does not look again) runs
 *   fifo   two wait, the first one first; a broadcast; the second may get the mutex first
 *   fixed  as steal, with two items and a loop around the wait
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t waiting;
static int items, supply = 1, loops, sleeping;
static int go_on, order[2], n;

static void *consumer(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    if (items == 0) {
        sleeping = 1;
        MUST(pthread_cond_wait(&c, &m));
    }
    while (loops && items == 0)
        MUST(pthread_cond_wait(&c, &m));
    assert(items > 0);
    items--;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *thief(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    if (sleeping && items > 0) /* only from one who was told already that there is one */
        items--;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *in_turn(void *arg)
{
    if (arg)
        MUST(sem_wait(&waiting));
    MUST(pthread_mutex_lock(&m));
    MUST(sem_post(&waiting)); /* with the mutex, so the next one waits after this one */
    while (!go_on)
        MUST(pthread_cond_wait(&c, &m));
    order[n++] = arg != NULL;
    MUST(pthread_mutex_unlock(&m));
    return NULL;
}

int main(int argc, char **argv)
{
    int fifo = arg_is(argc, argv, "fifo");
    pthread_t t1, t2;

    MUST(sem_init(&waiting, 0, 0));
    loops = arg_is(argc, argv, "fixed");
    supply += loops;
    t1 = go(fifo ? in_turn : consumer, NULL);
    t2 = go(fifo ? in_turn : thief, fifo ? &n : NULL);
    MUST(pthread_mutex_lock(&m));
    go_on = 1;
    items = supply;
    MUST(pthread_cond_broadcast(&c));
    MUST(pthread_mutex_unlock(&m));
    join(t1);
    join(t2);
    assert(!fifo || order[0] == 0);
    return 0;
}
