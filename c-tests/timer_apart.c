/* Two threads set one timer (timerfd), and one of them sleeps for longer than that and looks. Natively it finds it expired or not: the other
 * may have set it again just before. Here it always has, which is said. "own": only the one that sleeps sets it; "blocks": it waits for it. */
#include "t.h"
#include <sys/timerfd.h>

static int timer;

static void set(void)
{
    struct itimerspec when = {.it_value = {0, 1000000}};
    MUST(timerfd_settime(timer, 0, &when, NULL));
}

static void *sets(void *unused)
{
    set();
    return unused;
}

int main(int argc, char **argv)
{
    struct timespec while_ = {0, 2000000};
    uint64_t n;
    pthread_t t;
    int alone = arg_is(argc, argv, "own");

    timer = timerfd_create(CLOCK_MONOTONIC, arg_is(argc, argv, "blocks") ? 0 : TFD_NONBLOCK);
    set();
    if (!alone)
        t = go(sets, NULL);
    nanosleep(&while_, NULL);
    if (read(timer, &n, sizeof n) != sizeof n)
        assert(errno == EAGAIN && !alone);
    if (!alone)
        join(t);
    return 0;
}
