/* A job with a time limit: the main thread waits with epoll for the worker's eventfd and for a timer.  Buggy: it takes for
   granted that the job is over before the limit, though the job may wait for longer.  Fixed: it looks which it was. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static int finished;

static void *worker(void *arg)
{
    uint64_t one = 1;
    (void)arg;
    usleep(20000);
    if (write(finished, &one, sizeof one) != sizeof one)
        abort();
    return NULL;
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed"), ep = epoll_create1(0), limit = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec t = { { 0, 0 }, { 0, 10000000 } };
    struct epoll_event e = { .events = EPOLLIN };
    uint64_t v;
    pthread_t w;

    finished = eventfd(0, 0);
    e.data.fd = finished;
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, finished, &e));
    e.data.fd = limit;
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, limit, &e));
    MUST(timerfd_settime(limit, 0, &t, NULL));
    w = go(worker, NULL);
    if (epoll_wait(ep, &e, 1, -1) != 1)
        abort();
    if (!fixed)
        assert(e.data.fd == finished);
    if (e.data.fd == limit) {
        if (read(limit, &v, sizeof v) != sizeof v || v != 1)
            abort();
        if (epoll_wait(ep, &e, 1, -1) != 1 || e.data.fd != finished)
            abort();
    }
    join(w);
    return 0;
}
