/*
 * Two threads wait on one futex; the main thread wakes one and moves the other to a second futex.
 * Buggy: then it wakes the first futex again.  Fixed: the second one.
 */
#include "t.h"
#include "futex.h"

static volatile int gate, queue;

static void *waiter(void *unused)
{
    futex(&gate, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed");
    pthread_t t1, t2;
    long moved;

    t1 = go(waiter, NULL);
    t2 = go(waiter, NULL);
    sched_yield();
    /* The value check must fail once: the gate is still shut. */
    assert(futex(&gate, FUTEX_CMP_REQUEUE, 1, (struct timespec *)1, &queue, 7) == -1 &&
           errno == EAGAIN);
    gate = 1;
    moved = futex(&gate, FUTEX_CMP_REQUEUE, 1, (struct timespec *)1, &queue, 1);
    assert(moved >= 0 && moved <= 2);
    futex(fixed ? &queue : &gate, FUTEX_WAKE, 1, NULL, NULL, 0);
    join(t1);
    join(t2);
    return 0;
}
