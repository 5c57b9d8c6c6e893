/* A mutex that another thread unlocks, which glibc allows. "twice": a thread locks it again and waits for that. "crossed": two threads lock
 * two mutexes in crossing order, and a third unlocks one of them. Buggy: the same, but it unlocks nothing. */
#include "t.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static sem_t locked;

static void *crosses(void *arg)
{
    MUST(pthread_mutex_lock(&b));
    MUST(sem_post(&locked));
    MUST(pthread_mutex_lock(&a));
    MUST(pthread_mutex_unlock(&a));
    MUST(pthread_mutex_unlock(&b));
    return arg;
}

static void *unlocks(void *mutex)
{
    MUST(sem_wait(&locked));
    if (mutex)
        MUST(pthread_mutex_unlock(mutex));
    return NULL;
}

int main(int argc, char **argv)
{
    int twice = arg_is(argc, argv, "twice");
    pthread_t t, u = 0;

    MUST(sem_init(&locked, 0, 0));
    MUST(pthread_mutex_lock(&a));
    t = go(unlocks, arg_is(argc, argv, "buggy") ? NULL : &a);
    if (twice) {
        MUST(sem_post(&locked));
        MUST(pthread_mutex_lock(&a));
        MUST(pthread_mutex_unlock(&a));
    } else {
        u = go(crosses, NULL);
        MUST(pthread_mutex_lock(&b));
        MUST(pthread_mutex_unlock(&b));
    }
    join(t);
    if (!twice)
        join(u);
    return 0;
}
