/* sem_timedwait and sem_clockwait.  Buggy: takes a timeout for success.  Fixed: handles it. */
#include "t.h"

static sem_t s;
static int fixed;

static void *poster(void *unused)
{
    if (sem_trywait(&s) != 0)
        return unused;
    MUST(sem_post(&s));
    return unused;
}

int main(int argc, char **argv)
{
    struct timespec limit;
    pthread_t t;
    int rc;

    fixed = arg_is(argc, argv, "fixed");
    MUST(sem_init(&s, 0, 1));
    t = go(poster, NULL);
    MUST(sem_wait(&s));
    limit = in_ms(CLOCK_REALTIME, 20);
    rc = sem_timedwait(&s, &limit);
    assert(rc == 0 || errno == ETIMEDOUT);
    if (!fixed)
        assert(rc == 0);
    limit = in_ms(CLOCK_MONOTONIC, 20);
    assert(sem_clockwait(&s, CLOCK_MONOTONIC, &limit) == -1 && errno == ETIMEDOUT);
    join(t);
    return 0;
}
