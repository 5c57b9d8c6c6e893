/* The first thread ends by itself, and another joins it. Buggy: the first thread waits for that one before. "post": it ends with something
 * left for the one that joins it. */
#include "t.h"

static pthread_t first;
static sem_t s;

static void *joins(void *arg)
{
    void *result;

    MUST(pthread_join(first, &result));
    assert(result == (void *)42);
    return arg;
}

static void *waits_first(void *arg)
{
    MUST(sem_wait(&s));
    return joins(arg);
}

int main(int argc, char **argv)
{
    pthread_t t;

    first = pthread_self();
    MUST(sem_init(&s, 0, 0));
    t = go(arg_is(argc, argv, "post") ? waits_first : joins, NULL);
    if (arg_is(argc, argv, "buggy"))
        MUST(sem_wait(&s));
    if (arg_is(argc, argv, "post"))
        MUST(sem_post(&s));
    else
        MUST(pthread_detach(t));
    pthread_exit((void *)42);
}
