/* An epoll instance that is watched by another.  Two threads serve the outer one; each event is for one of them, since the
   inner watch is one-shot.  Buggy: who has served it does not set it again, so the second byte is never seen. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int outer, inner, fd, done, fixed;
static uint64_t served;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *server(void *arg)
{
    struct epoll_event e;
    uint64_t v;
    (void)arg;

    for (;;) {
        if (epoll_wait(outer, &e, 1, -1) != 1)
            abort();
        if (e.data.fd == done)
            return NULL;
        if (epoll_wait(inner, &e, 1, 0) != 1)
            continue;
        if (read(fd, &v, sizeof v) != sizeof v)
            abort();
        MUST(pthread_mutex_lock(&lock));
        served += v;
        v = served;
        MUST(pthread_mutex_unlock(&lock));
        if (v == 2) {
            uint64_t one = 1;
            if (write(done, &one, sizeof one) != sizeof one)
                abort();
        } else if (fixed) {
            e.events = EPOLLIN | EPOLLONESHOT;
            e.data.fd = fd;
            MUST(epoll_ctl(inner, EPOLL_CTL_MOD, fd, &e));
        }
    }
}

int main(int argc, char **argv)
{
    struct epoll_event e = { .events = EPOLLIN | EPOLLONESHOT };
    uint64_t one = 1;
    pthread_t a, b;

    fixed = arg_is(argc, argv, "fixed");
    outer = epoll_create1(0);
    inner = epoll_create1(0);
    fd = eventfd(0, 0);
    done = eventfd(0, 0);
    e.data.fd = fd;
    MUST(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &e));
    e.events = EPOLLIN;
    e.data.fd = inner;
    MUST(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &e));
    e.data.fd = done;
    MUST(epoll_ctl(outer, EPOLL_CTL_ADD, done, &e));
    a = go(server, NULL);
    b = go(server, NULL);
    for (int i = 0; i < 2; i++)
        if (write(fd, &one, sizeof one) != sizeof one)
            abort();
    join(a);
    join(b);
    return 0;
}
