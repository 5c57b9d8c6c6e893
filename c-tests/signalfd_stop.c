/* A server that is told to stop by SIGTERM through a signalfd, and that serves an eventfd until then, with one epoll
   instance.  Buggy: it takes the order to stop before it has looked what else there is, so that a request that came first
   may be left.  Fixed: it serves what there is before it stops. */
#include "t.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed"), ep = epoll_create1(0), work, stop, left = 1;
    struct epoll_event e = { .events = EPOLLIN };
    struct signalfd_siginfo info;
    uint64_t v = 0;
    sigset_t set;
    pid_t child, server = getpid();

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    stop = signalfd(-1, &set, 0);
    work = eventfd(0, EFD_NONBLOCK);
    e.data.fd = work;
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, work, &e));
    e.data.fd = stop;
    MUST(epoll_ctl(ep, EPOLL_CTL_ADD, stop, &e));
    child = fork();
    if (child == 0) {
        uint64_t one = 1;
        if (write(work, &one, sizeof one) != sizeof one || kill(server, SIGTERM) != 0)
            abort();
        _exit(0);
    }
    for (;;) {
        struct epoll_event two[2];
        int n = epoll_wait(ep, two, fixed ? 2 : 1, -1), stopped = 0;
        for (int i = 0; i < n; i++) {
            if (two[i].data.fd == stop) {
                assert(read(stop, &info, sizeof info) == sizeof info && info.ssi_signo == SIGTERM);
                stopped = 1;
            } else {
                /* Not at once: the second look finds it again, after the signal. */
                if (!fixed && left-- > 0)
                    continue;
                assert(read(work, &v, sizeof v) == sizeof v);
            }
        }
        if (stopped)
            break;
    }
    assert(reap(child) == 0);
    assert(v == 1);
    return 0;
}
