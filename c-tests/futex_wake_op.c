/*
 * A lock and a condition in one call, as old C libraries had it: FUTEX_WAKE_OP gives back the lock, wakes who waits for it
 * if the lock says that somebody does, and wakes one who waits for the event.
 * Buggy: the comparison asks for a value that the lock never has, so that who waits for the lock sleeps on.
 */
#include "t.h"
#include "futex.h"

static volatile int event, lock = 2;

static void *waits_for_event(void *unused)
{
    futex_wait_while(&event, 0);
    return unused;
}

static void *waits_for_lock(void *unused)
{
    futex_wait_while(&lock, 2);
    return unused;
}

int main(int argc, char **argv)
{
    int asked = arg_is(argc, argv, "fixed") ? 1 : 7;
    pthread_t t1 = go(waits_for_event, NULL), t2 = go(waits_for_lock, NULL);
    long woken;

    event = 1;
    /* lock -= 2; the old value, 2, is compared. */
    woken = futex(&event, FUTEX_WAKE_OP, 1, (struct timespec *)1, &lock,
                  FUTEX_OP(FUTEX_OP_ADD, -2, FUTEX_OP_CMP_GT, asked));
    assert(lock == 0 && woken >= 0 && woken <= 2);
    assert(futex(&event, FUTEX_WAKE_OP, 1, (struct timespec *)1, &lock,
                 FUTEX_OP(FUTEX_OP_SET, 1, 9, 0)) == -1 && errno == ENOSYS);
    join(t1);
    join(t2);
    return 0;
}
