/* A signal comes after a timed wait has given up and before it has its mutex again. Buggy: who is told ETIMEDOUT takes it that
 * nothing has come. Fixed: the condition decides. */
#include "t.h"
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready;

static void *sender(void *arg)
{
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return arg;
}

int main(int argc, char **argv)
{
    struct timespec end;
    pthread_t t = go(sender, NULL);
    int rc = 0;

    MUST(clock_gettime(CLOCK_REALTIME, &end));
    end.tv_sec++;
    pthread_mutex_lock(&m);
    while (!ready && rc == 0)
        rc = pthread_cond_timedwait(&c, &m, &end);
    if (arg_is(argc, argv, "buggy") && rc == ETIMEDOUT && ready)
        abort();
    if (rc == ETIMEDOUT) {
        /* It is not told before its time. */
        struct timespec now;
        MUST(clock_gettime(CLOCK_REALTIME, &now));
        if (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec))
            abort();
    }
    pthread_mutex_unlock(&m);
    join(t);
    return 0;
}
