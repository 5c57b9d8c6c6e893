/* An edge-triggered watch is reported once for what comes.  Two writers put a byte each into a pipe; the reader waits for
   events until it has both.  Buggy: it reads one byte for each event, so that two bytes that came before it looked are one
   event.  Fixed: it reads until there is nothing left. */
#include "t.h"
#include <fcntl.h>
#include <sys/epoll.h>

static int ends[2];

static void *writer(void *arg)
{
    (void)arg;
    if (write(ends[1], "x", 1) != 1)
        abort();
    return NULL;
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed"), ep = epoll_create1(0), got = 0;
    struct epoll_event e = { .events = EPOLLIN | EPOLLET };
    pthread_t a, b;
    char c;

    MUST(pipe2(ends, O_NONBLOCK));
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &e));
    a = go(writer, NULL);
    b = go(writer, NULL);
    while (got < 2) {
        if (epoll_wait(ep, &e, 1, -1) != 1)
            abort();
        do {
            if (read(ends[0], &c, 1) != 1)
                break;
            got++;
        } while (fixed);
    }
    join(a);
    join(b);
    return 0;
}
