/*
 * Two threads wait on one condition variable for different things, the first one first.  Buggy: one
 * signal, meant for the first; if it wakes the second, that one waits again and nobody is left to
 * wake the first.  Fixed: broadcast.
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t first_in, second_in;
static int x, y, fixed;

static void wake(void)
{
    if (fixed)
        MUST(pthread_cond_broadcast(&c));
    else
        MUST(pthread_cond_signal(&c));
}

static void *first(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    MUST(sem_post(&first_in)); /* the mutex is held until the wait, so this one waits first */
    while (!x)
        MUST(pthread_cond_wait(&c, &m));
    y = 1;
    wake();
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

static void *second(void *unused)
{
    MUST(sem_wait(&first_in));
    MUST(pthread_mutex_lock(&m));
    MUST(sem_post(&second_in));
    while (!y)
        MUST(pthread_cond_wait(&c, &m));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    MUST(sem_init(&first_in, 0, 0));
    MUST(sem_init(&second_in, 0, 0));
    t1 = go(first, NULL);
    t2 = go(second, NULL);
    MUST(sem_wait(&second_in));
    MUST(pthread_mutex_lock(&m));
    x = 1;
    wake();
    MUST(pthread_mutex_unlock(&m));
    join(t1);
    join(t2);
    return 0;
}
