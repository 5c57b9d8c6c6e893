/* Two mutexes with priority inheritance in crossing order.  The kernel refuses who closes the circle; glibc lets that one wait for ever, which
 * is a deadlock, or, where the mutex checks for errors or is recursive, fails an assertion of its own.  With a deadline on one side the other
 * may still wait for ever, which is said. */
#include "t.h"

static pthread_mutex_t m, n;
static int timed;

static void *up(void *unused)
{
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&n);
    pthread_mutex_unlock(&n);
    pthread_mutex_unlock(&m);
    return unused;
}

static void *down(void *unused)
{
    struct timespec until;
    pthread_mutex_lock(&n);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (!timed || pthread_mutex_timedlock(&m, &until) == 0) {
        if (!timed) pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
    pthread_mutex_unlock(&n);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pthread_t t, u;
    timed = arg_is(argc, argv, "timed");
    MUST(pthread_mutexattr_init(&attr));
    if (!arg_is(argc, argv, "none")) MUST(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    if (arg_is(argc, argv, "checks")) MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    if (arg_is(argc, argv, "recursive")) MUST(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    MUST(pthread_mutex_init(&m, &attr));
    MUST(pthread_mutex_init(&n, &attr));
    t = go(up, NULL);
    if (arg_is(argc, argv, "fixed")) join(t);
    u = go(down, NULL);
    if (!arg_is(argc, argv, "fixed")) join(t);
    join(u);
    return 0;
}
