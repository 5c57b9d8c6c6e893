/*
 * A thread waits for two gates at once (futex_waitv), which two others open.  Buggy: it is told of one,
 * and waits for the other whatever is said there, though it may have been opened already.  Fixed: it
 * waits while a gate is shut.
 */
#include "t.h"
#include "futex.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

struct word {
    uint64_t value, at;
    uint32_t flags, reserved;
};

static volatile int gates[2];
static int fixed;

static long wait_for(int n, const int *which, int value)
{
    struct word words[2];

    for (int i = 0; i < n; i++)
        words[i] = (struct word){value, (uintptr_t)&gates[which[i]], 2 | FUTEX_PRIVATE_FLAG, 0};
    return syscall(SYS_futex_waitv, words, n, 0, NULL, CLOCK_MONOTONIC);
}

static void *opens(void *gate)
{
    int i = (int)(intptr_t)gate;

    sched_yield();
    gates[i] = 1;
    futex(&gates[i], FUTEX_WAKE, 1, NULL, NULL, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    static const int both[] = {0, 1};
    pthread_t t1, t2;
    long woken;

    fixed = arg_is(argc, argv, "fixed");
    t1 = go(opens, (void *)0);
    t2 = go(opens, (void *)1);
    woken = wait_for(2, both, 0);
    assert(woken == 0 || woken == 1 || (woken == -1 && errno == EAGAIN));
    if (fixed) {
        for (int i = 0; i < 2; i++)
            while (gates[i] == 0) {
                long r = wait_for(1, &i, 0);
                assert(r == 0 || (r == -1 && errno == EAGAIN));
            }
    } else if (woken >= 0) {
        int other = 1 - (int)woken;

        wait_for(1, &other, gates[other]);
    }
    join(t1);
    join(t2);
    return 0;
}
