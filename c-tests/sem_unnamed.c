/* One unit of a semaphore, two threads.  Buggy: looks whether there is one, then waits; but there is nobody left to post.  Fixed: trywait. */
#include "t.h"

static sem_t units;
static int fixed, taken;

static void *take(void *unused)
{
    int value;

    if (fixed) {
        if (sem_trywait(&units) != 0) {
            assert(errno == EAGAIN);
            return unused;
        }
    } else {
        MUST(sem_getvalue(&units, &value));
        if (value == 0)
            return unused;
        MUST(sem_wait(&units));
    }
    taken++;
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    MUST(sem_init(&units, 0, 1));
    t1 = go(take, NULL);
    t2 = go(take, NULL);
    join(t1);
    join(t2);
    assert(taken == 1);
    return 0;
}
