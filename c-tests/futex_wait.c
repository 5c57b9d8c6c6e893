/* An event made of a bare futex.  Buggy: wakes before it stores, so who waits in between sleeps for ever.  Fixed: stores, then wakes. */
#include "t.h"
#include "futex.h"

static volatile int event;
static int fixed;

static void *waiter(void *unused)
{
    futex_wait_while(&event, 0);
    return unused;
}

static void *setter(void *unused)
{
    if (fixed)
        event = 1;
    futex(&event, FUTEX_WAKE, 1, NULL, NULL, 0);
    if (!fixed) {
        sched_yield();
        event = 1;
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    t1 = go(waiter, NULL);
    t2 = go(setter, NULL);
    join(t1);
    join(t2);
    return 0;
}
