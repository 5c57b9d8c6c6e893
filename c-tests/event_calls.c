/* eventfd, epoll and timerfd one call at a time, as the kernel answers: all that one thread can see of them. */
#include "t.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#define FAILS(call, error) do { errno = 0; assert((call) == -1); assert(errno == (error)); } while (0)

static int waits(int ep, struct epoll_event *events, int room)
{
    return epoll_wait(ep, events, room, 0);
}

static int add(int ep, int fd, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.fd = fd };
    return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}

static int change(int ep, int fd, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.fd = fd };
    return epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e);
}

static int drop(int ep, int fd)
{
    return epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL);
}

static short polled(int fd, short events)
{
    struct pollfd p = { .fd = fd, .events = events };
    poll(&p, 1, 0);
    return p.revents;
}

static void counters(void)
{
    uint64_t v = 5, w[2] = { 1, 2 };
    int fd = eventfd(3, EFD_NONBLOCK), n;
    struct iovec pieces[2] = { { &w[0], 8 }, { &w[1], 8 } };

    FAILS(eventfd(0, 0x10), EINVAL);
    assert(fcntl(fd, F_GETFL) == (O_RDWR | O_NONBLOCK));
    assert(lseek(fd, 0, SEEK_CUR) == 0);
    FAILS(ioctl(fd, FIONREAD, &n), ENOTTY);
    assert(polled(fd, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM) == (POLLIN | POLLOUT));
    FAILS(read(fd, &v, 7), EINVAL);
    FAILS(write(fd, &v, 7), EINVAL);
    assert(write(fd, &v, sizeof v) == 8);
    assert(read(fd, w, sizeof w) == 8 && w[0] == 8);
    FAILS(read(fd, &v, 8), EAGAIN);
    assert(polled(fd, POLLIN | POLLOUT) == POLLOUT);
    v = UINT64_MAX;
    FAILS(write(fd, &v, 8), EINVAL);
    v = UINT64_MAX - 1;
    assert(write(fd, &v, 8) == 8);
    assert(polled(fd, POLLIN | POLLOUT) == POLLIN);
    v = 1;
    FAILS(write(fd, &v, 8), EAGAIN);
    v = 0;
    assert(write(fd, &v, 8) == 8);
    assert(read(fd, &v, 8) == 8 && v == UINT64_MAX - 1);
    w[0] = 1, w[1] = 2;
    assert(writev(fd, pieces, 2) == 16);
    assert(readv(fd, pieces, 2) == 8 && w[0] == 3);
    close(fd);
    fd = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    assert(read(fd, &v, 8) == 8 && v == 1);
    assert(read(fd, &v, 8) == 8 && v == 1);
    FAILS(read(fd, &v, 8), EAGAIN);
    close(fd);
    FAILS(read(fd, &v, 8), EBADF);
}

static void errors(void)
{
    int ep = epoll_create1(EPOLL_CLOEXEC), other = epoll_create(1), ev = eventfd(0, 0);
    int file = open("/proc/self/exe", O_RDONLY), chain[8];
    struct epoll_event e[4];
    char c;

    assert(fcntl(ep, F_GETFD) == FD_CLOEXEC && fcntl(other, F_GETFD) == 0);
    assert(fcntl(ep, F_GETFL) == O_RDWR);
    FAILS(epoll_create(0), EINVAL);
    FAILS(epoll_create1(1), EINVAL);
    FAILS(read(ep, &c, 1), EINVAL);
    FAILS(write(ep, &c, 1), EINVAL);
    FAILS(add(-1, ev, EPOLLIN), EBADF);
    FAILS(add(ep, 200, EPOLLIN), EBADF);
    FAILS(add(ep, file, EPOLLIN), EPERM);
    FAILS(add(ep, ep, EPOLLIN), EINVAL);
    FAILS(add(ev, ep, EPOLLIN), EINVAL);
    FAILS(add(file, ev, EPOLLIN), EINVAL);
    FAILS(epoll_ctl(ep, EPOLL_CTL_ADD, ev, NULL), EFAULT);
    FAILS(epoll_ctl(ep, 7, ev, e), EINVAL);
    FAILS(change(ep, ev, EPOLLIN), ENOENT);
    FAILS(drop(ep, ev), ENOENT);
    MUST(add(ep, ev, EPOLLIN));
    FAILS(add(ep, ev, EPOLLIN), EEXIST);
    FAILS(epoll_wait(ep, e, 0, 0), EINVAL);
    FAILS(epoll_wait(ev, e, 1, 0), EINVAL);
    FAILS(epoll_wait(-1, e, 1, 0), EBADF);
    FAILS(epoll_wait(file, e, 1, 0), EINVAL);
    MUST(drop(ep, ev));
    FAILS(add(ep, other, EPOLLIN | EPOLLEXCLUSIVE), EINVAL);
    FAILS(change(ep, ev, EPOLLIN | EPOLLEXCLUSIVE), EINVAL);
    MUST(add(ep, other, EPOLLIN));
    FAILS(add(other, ep, EPOLLIN), ELOOP);
    for (int i = 0; i < 8; i++)
        chain[i] = epoll_create1(0);
    for (int i = 0; i < 4; i++)
        MUST(add(chain[i + 1], chain[i], EPOLLIN));
    FAILS(add(chain[5], chain[4], EPOLLIN), ELOOP);
    for (int i = 0; i < 8; i++)
        close(chain[i]);
    close(ep), close(other), close(ev), close(file);
}

static void levels(void)
{
    struct epoll_event e[4];
    uint64_t one = 1, v;
    int ep = epoll_create1(0), a = eventfd(0, EFD_NONBLOCK), b = eventfd(0, EFD_NONBLOCK), d;

    MUST(add(ep, a, EPOLLIN));
    MUST(add(ep, b, EPOLLIN));
    assert(waits(ep, e, 4) == 0);
    assert(polled(ep, POLLIN) == 0);
    assert(write(b, &one, 8) == 8 && write(a, &one, 8) == 8);
    assert(polled(ep, POLLIN | POLLOUT | POLLRDNORM) == (POLLIN | POLLRDNORM));
    /* In the order in which they became ready; those reported go to the end. */
    assert(waits(ep, e, 1) == 1 && e[0].data.fd == b && e[0].events == EPOLLIN);
    assert(waits(ep, e, 1) == 1 && e[0].data.fd == a);
    assert(waits(ep, e, 4) == 2 && e[0].data.fd == b && e[1].data.fd == a);
    /* What is not ready any more is left out, and is at the end when it is again. */
    assert(read(b, &v, 8) == 8);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == a);
    assert(write(b, &one, 8) == 8);
    assert(waits(ep, e, 4) == 2 && e[0].data.fd == a && e[1].data.fd == b);
    /* One-shot, set again. */
    MUST(change(ep, a, EPOLLIN | EPOLLONESHOT));
    assert(waits(ep, e, 4) == 2);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == b);
    assert(write(a, &one, 8) == 8);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == b);
    MUST(change(ep, a, EPOLLOUT));
    assert(waits(ep, e, 4) == 2 && e[1].data.fd == a && e[1].events == EPOLLOUT);
    /* A watch is of the description: it lives on after close while there is a copy. */
    d = dup(b);
    close(b);
    assert(waits(ep, e, 4) == 2);
    close(d);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == a);
    close(a);
    assert(waits(ep, e, 4) == 0);
    close(ep);
}

static void edges(void)
{
    struct epoll_event e[4];
    char buffer[8];
    int ep = epoll_create1(0), p[2];

    MUST(pipe2(p, O_NONBLOCK));
    MUST(add(ep, p[0], EPOLLIN | EPOLLET));
    MUST(add(ep, p[1], EPOLLOUT | EPOLLET));
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == p[1] && e[0].events == EPOLLOUT);
    assert(waits(ep, e, 4) == 0);
    assert(write(p[1], "ab", 2) == 2);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == p[0]);
    assert(waits(ep, e, 4) == 0);
    /* Reading a part is no event; another write is one, though it was ready before. */
    assert(read(p[0], buffer, 1) == 1);
    assert(waits(ep, e, 4) == 0);
    assert(write(p[1], "c", 1) == 1);
    assert(waits(ep, e, 4) == 1 && e[0].events == EPOLLIN);
    /* Changing it is one too. */
    MUST(change(ep, p[0], EPOLLIN | EPOLLET));
    assert(waits(ep, e, 4) == 1);
    assert(read(p[0], buffer, 8) == 2);
    /* Room after the pipe was full. */
    while (write(p[1], buffer, 8) > 0) { }
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == p[0]);
    assert(read(p[0], buffer, 8) == 8);
    assert(waits(ep, e, 4) == 0);
    for (int i = 0; i < 4096 / 8 - 1; i++)
        assert(read(p[0], buffer, 8) == 8);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == p[1] && e[0].events == EPOLLOUT);
    close(p[1]);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == p[0] && e[0].events == (EPOLLIN | EPOLLHUP));
    assert(waits(ep, e, 4) == 0);
    close(p[0]);
    close(ep);
}

static void nested(void)
{
    struct epoll_event e[4];
    uint64_t one = 1, v;
    int outer = epoll_create1(0), inner = epoll_create1(0), a = eventfd(0, EFD_NONBLOCK);

    MUST(add(outer, inner, EPOLLIN | EPOLLET));
    MUST(add(inner, a, EPOLLIN));
    assert(waits(outer, e, 4) == 0);
    assert(write(a, &one, 8) == 8);
    assert(waits(outer, e, 4) == 1 && e[0].data.fd == inner && e[0].events == EPOLLIN);
    assert(waits(outer, e, 4) == 0);
    assert(write(a, &one, 8) == 8);
    assert(waits(outer, e, 4) == 1);
    assert(read(a, &v, 8) == 8);
    assert(polled(inner, POLLIN) == 0);
    MUST(change(outer, inner, EPOLLIN));
    assert(waits(outer, e, 4) == 0);
    assert(write(a, &one, 8) == 8);
    assert(waits(outer, e, 4) == 1 && waits(outer, e, 4) == 1);
    close(inner);
    assert(waits(outer, e, 4) == 0);
    close(a);
    close(outer);
}

static void timers(void)
{
    struct epoll_event e[4];
    struct itimerspec t = { { 0, 0 }, { 0, 20000000 } }, old;
    uint64_t v;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), ep = epoll_create1(0);

    FAILS(timerfd_create(99, 0), EINVAL);
    FAILS(timerfd_create(CLOCK_MONOTONIC, 1), EINVAL);
    FAILS(timerfd_settime(ep, 0, &t, NULL), EINVAL);
    FAILS(timerfd_settime(fd, 8, &t, NULL), EINVAL);
    t.it_value.tv_nsec = 1000000000;
    FAILS(timerfd_settime(fd, 0, &t, NULL), EINVAL);
    t.it_value.tv_nsec = 20000000;
    FAILS(read(fd, &v, 8), EAGAIN);
    FAILS(write(fd, &v, 8), EINVAL);
    MUST(timerfd_gettime(fd, &old));
    assert(old.it_value.tv_sec == 0 && old.it_value.tv_nsec == 0);
    MUST(add(ep, fd, EPOLLIN));
    assert(waits(ep, e, 4) == 0);
    MUST(timerfd_settime(fd, 0, &t, &old));
    MUST(timerfd_gettime(fd, &old));
    assert(old.it_value.tv_nsec > 0 && old.it_value.tv_nsec <= 20000000);
    FAILS(read(fd, &v, 4), EINVAL);
    assert(waits(ep, e, 4) == 0);
    assert(epoll_wait(ep, e, 4, 5000) == 1 && e[0].data.fd == fd && e[0].events == EPOLLIN);
    assert(read(fd, &v, 8) == 8 && v == 1);
    FAILS(read(fd, &v, 8), EAGAIN);
    assert(epoll_wait(ep, e, 4, 30) == 0);
    MUST(timerfd_settime(fd, 0, &t, NULL));
    assert(epoll_wait(ep, e, 4, 5) == 0);
    assert(epoll_wait(ep, e, 4, -1) == 1);
    assert(read(fd, &v, 8) == 8 && v == 1);
    /* A period; a deadline in the past. */
    t.it_interval.tv_nsec = 10000000;
    MUST(timerfd_settime(fd, 0, &t, NULL));
    usleep(45000);
    assert(read(fd, &v, 8) == 8 && v >= 3);
    t.it_value = (struct timespec) { 0, 0 };
    MUST(timerfd_settime(fd, 0, &t, NULL));
    FAILS(read(fd, &v, 8), EAGAIN);
    t.it_interval = (struct timespec) { 0, 0 };
    t.it_value = (struct timespec) { 0, 1 };
    MUST(timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL));
    usleep(1000);
    assert(polled(fd, POLLIN) == POLLIN);
    assert(read(fd, &v, 8) == 8 && v == 1);
    fcntl(fd, F_SETFL, 0);
    t.it_value = (struct timespec) { 0, 3000000 };
    MUST(timerfd_settime(fd, 0, &t, NULL));
    assert(read(fd, &v, 8) == 8 && v == 1);
    close(ep);
    close(fd);
}

static void signals(void)
{
    struct epoll_event e[4];
    struct signalfd_siginfo info[2];
    sigset_t set;
    int fd, ep = epoll_create1(0);

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    fd = signalfd(-1, &set, SFD_NONBLOCK);
    FAILS(signalfd(ep, &set, 0), EINVAL);
    FAILS(read(fd, info, 64), EINVAL);
    FAILS(read(fd, info, sizeof info), EAGAIN);
    MUST(add(ep, fd, EPOLLIN));
    assert(waits(ep, e, 4) == 0);
    raise(SIGUSR2);
    kill(getpid(), SIGUSR1);
    assert(waits(ep, e, 4) == 1 && e[0].data.fd == fd && e[0].events == EPOLLIN);
    assert(read(fd, info, sizeof info) == sizeof info);
    assert(info[0].ssi_signo + info[1].ssi_signo == (uint32_t)(SIGUSR1 + SIGUSR2));
    FAILS(read(fd, info, sizeof info), EAGAIN);
    assert(waits(ep, e, 4) == 0);
    sigdelset(&set, SIGUSR2);
    assert(signalfd(fd, &set, 0) == fd);
    raise(SIGUSR2);
    FAILS(read(fd, info, sizeof info), EAGAIN);
    raise(SIGUSR1);
    assert(read(fd, info, sizeof info) == sizeof info[0] && info[0].ssi_signo == SIGUSR1);
    close(ep);
    close(fd);
}

int main(void)
{
    counters();
    errors();
    levels();
    edges();
    nested();
    timers();
    signals();
    return 0;
}
