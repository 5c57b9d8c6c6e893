/*
 * Threads that join each other.  two, three: a cycle of that many, a deadlock (glibc does not see
 * it).  self: a thread that joins itself gets EDEADLK.
 */
#include "t.h"

static pthread_mutex_t start = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread[3];
static int threads;

static void *join_next(void *arg)
{
    int i = (int)(intptr_t)arg, rc;

    MUST(pthread_mutex_lock(&start)); /* until all are known */
    MUST(pthread_mutex_unlock(&start));
    rc = pthread_join(thread[(i + 1) % threads], NULL);
    assert(rc == (threads == 1 ? EDEADLK : 0));
    return NULL;
}

int main(int argc, char **argv)
{
    threads = arg_is(argc, argv, "self") ? 1 : arg_is(argc, argv, "two") ? 2 : 3;
    MUST(pthread_mutex_lock(&start));
    for (intptr_t i = 0; i < threads; i++)
        thread[i] = go(join_next, (void *)i);
    MUST(pthread_mutex_unlock(&start));
    pthread_exit(NULL);
}
