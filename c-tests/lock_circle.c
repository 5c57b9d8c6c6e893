/* Locks that threads acquire in a circle. What keeps them from a deadlock: nothing (crossed), a semaphore (apart), a lock around both
 * (gated); three: a circle of three threads. */
#include "t.h"

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_c = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *orders[3][2];
static sem_t turn;
static int gated, apart;

static void *both(void *which)
{
    pthread_mutex_t **locks = orders[(intptr_t)which];
    if (apart && which)
        MUST(sem_wait(&turn));
    if (gated)
        MUST(pthread_mutex_lock(&gate));
    MUST(pthread_mutex_lock(locks[0]));
    MUST(pthread_mutex_lock(locks[1]));
    MUST(pthread_mutex_unlock(locks[1]));
    MUST(pthread_mutex_unlock(locks[0]));
    if (gated)
        MUST(pthread_mutex_unlock(&gate));
    if (apart && !which)
        MUST(sem_post(&turn));
    return NULL;
}

int main(int argc, char **argv)
{
    int three = arg_is(argc, argv, "three");
    gated = arg_is(argc, argv, "gated"), apart = arg_is(argc, argv, "apart");
    MUST(sem_init(&turn, 0, 0));
    orders[0][0] = &lock_a, orders[0][1] = &lock_b;
    orders[1][0] = &lock_b, orders[1][1] = three ? &lock_c : &lock_a;
    orders[2][0] = &lock_c, orders[2][1] = &lock_a;
    pthread_t t[3];
    for (intptr_t n = 0; n < 2 + three; n++)
        t[n] = go(both, (void *)n);
    for (int n = 0; n < 2 + three; n++)
        join(t[n]);
    return 0;
}
