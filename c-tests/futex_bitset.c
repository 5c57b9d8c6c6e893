/* Two threads wait on one futex with different bits; the buggy waker names only the bits of one. */
#include "t.h"
#include "futex.h"

static volatile int event;
static int fixed;

static void *waiter(void *bits)
{
    while (event == 0)
        if (futex(&event, FUTEX_WAIT_BITSET, 0, NULL, NULL, (int)(intptr_t)bits) != 0)
            assert(errno == EAGAIN);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    t1 = go(waiter, (void *)1);
    t2 = go(waiter, (void *)2);
    sched_yield();
    event = 1;
    futex(&event, FUTEX_WAKE_BITSET, 100, NULL, NULL, fixed ? FUTEX_BITSET_MATCH_ANY : 1);
    join(t1);
    join(t2);
    return 0;
}
