/*
 * Loops that poll with sched_yield().
 *   adaptive  at most twice, then waits for a semaphore: ends on every path
 *   forever   polls until the flag is set: without fairness there would be paths without end
 *   sleep     polls with usleep(): in virtual time it goes on only when nobody else can
 */
#include "t.h"
#include <sched.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t s;
static int flag;

static int is_set(void)
{
    int f;

    MUST(pthread_mutex_lock(&m));
    f = flag;
    MUST(pthread_mutex_unlock(&m));
    return f;
}

static void *sets(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    flag = 1;
    MUST(pthread_mutex_unlock(&m));
    MUST(sem_post(&s));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;

    MUST(sem_init(&s, 0, 0));
    t = go(sets, NULL);
    if (arg_is(argc, argv, "adaptive")) {
        for (int i = 0; i < 2 && !is_set(); i++)
            sched_yield();
        MUST(sem_wait(&s));
    } else if (arg_is(argc, argv, "sleep")) {
        while (!is_set())
            usleep(1000);
    } else {
        while (!is_set())
            sched_yield();
    }
    assert(is_set());
    join(t);
    return 0;
}
