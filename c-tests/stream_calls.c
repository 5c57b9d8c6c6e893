/* What glibc makes of the locks of streams: each is the owner's as often as he takes it, belongs to a thread that is over or was cancelled
 * as before, is given back by whoever gives it back, and is free in a forked child. Then ftrylockfile in a loop, and what is told by
 * ftell. */
#include "t.h"

static sem_t held;
static int x;

static void *takes(void *unused)
{
    flockfile(stdout);
    return unused;
}

static void *gives(void *unused)
{
    funlockfile(stdout);
    return unused;
}

static void *tries(void *result)
{
    *(int *)result = ftrylockfile(stdout);
    return NULL;
}

static void *sleeps(void *unused)
{
    flockfile(stdout);
    MUST(sem_post(&held));
    pause();
    return unused;
}

static int tried(void)
{
    int result;

    join(go(tries, &result));
    return result;
}

static void in_child(void)
{
    MUST(ftrylockfile(stdout));
    MUST(tried() != EBUSY);
    funlockfile(stdout);
    MUST(tried());
}

static void *adds(void *unused)
{
    flockfile(stdout);
    x++;
    sched_yield();
    funlockfile(stdout);
    return unused;
}

static void *polls(void *unused)
{
    while (ftrylockfile(stdout) != 0)
        ;
    x++;
    funlockfile(stdout);
    return unused;
}

static void *tells(void *place)
{
    fputs("abc", stdout);
    *(long *)place = ftell(stdout);
    return NULL;
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "poll")) {
        pthread_t t1 = go(adds, NULL), t2 = go(polls, NULL);
        join(t1);
        join(t2);
        MUST(x - 2);
        return 0;
    }
    if (arg_is(argc, argv, "tell")) {
        long first, second;
        if (freopen("/dev/null", "w", stdout) == NULL)
            abort();
        pthread_t t1 = go(tells, &first), t2 = go(tells, &second);
        join(t1);
        join(t2);
        assert(first < 6 && "only the second one to print is told 6");
        return 0;
    }
    MUST(sem_init(&held, 0, 0));
    flockfile(stdout);
    flockfile(stdout);
    MUST(ftrylockfile(stdout));
    MUST(tried() != EBUSY);
    funlockfile(stdout);
    funlockfile(stdout);
    MUST(tried() != EBUSY);
    join(go(gives, NULL));
    MUST(tried());
    join(go(gives, NULL));
    pthread_t t = go(sleeps, NULL);
    MUST(sem_wait(&held));
    MUST(ftrylockfile(stdout) != EBUSY);
    MUST(reap(fork_run(in_child)));
    MUST(pthread_cancel(t));
    join(t);
    MUST(ftrylockfile(stdout) != EBUSY);
    join(go(gives, NULL));
    join(go(takes, NULL));
    MUST(ftrylockfile(stdout) != EBUSY);
    join(go(gives, NULL));
    MUST(ftrylockfile(stdout));
    return 0;
}
