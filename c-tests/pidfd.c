/* Descriptors of processes. "look": one look whether a child is over, which it need not be. "poll": who waits for it by poll finds it over, and
 * waitid gets it at once. "epoll": the same by an edge-triggered epoll instance. "crossed": two children wait for each other's end. "pass": the
 * parent waits for a grandchild by a descriptor that the child has passed on by fork. "first": of two children either is over first.
 * With "fixed" in place of "buggy" nothing is wrong. */
#include "t.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static int descriptor(pid_t pid)
{
    int fd = syscall(SYS_pidfd_open, pid, 0);
    assert(fd >= 0);
    return fd;
}

static int ready(int fd, int timeout)
{
    struct pollfd asked = {fd, POLLIN, 0};
    return poll(&asked, 1, timeout);
}

static int status(int fd, int options)
{
    siginfo_t info = {.si_pid = 0};
    MUST(waitid(P_PIDFD, fd, &info, WEXITED | options));
    return info.si_pid ? info.si_status : -1;
}

static pid_t child_that_exits(int with)
{
    pid_t child = fork();
    if (!child) _exit(with);
    return child;
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "look";
    int buggy = arg_is(argc, argv, "buggy"), fd = -1;
    if (!strcmp(how, "look")) {
        fd = descriptor(child_that_exits(3));
        int over = ready(fd, 0);
        assert(!buggy || over == 1);
        assert(!over || status(fd, WNOHANG) == 3);
        if (!over) assert(status(fd, 0) == 3);
    } else if (!strcmp(how, "poll")) {
        fd = descriptor(child_that_exits(3));
        assert(ready(fd, -1) == 1);
        int got = status(fd, WNOHANG);
        assert(buggy ? got < 0 : got == 3);
    } else if (!strcmp(how, "epoll")) {
        int epoll = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET}, got;
        pid_t child = child_that_exits(4);
        fd = descriptor(child);
        MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
        assert(epoll_wait(epoll, &got, 1, -1) == 1);
        assert(status(fd, WNOHANG) == 4);
        if (buggy) epoll_wait(epoll, &got, 1, -1);
    } else if (!strcmp(how, "crossed")) {
        int ends[2];
        MUST(pipe(ends));
        pid_t one = fork();
        if (!one) {
            pid_t other;
            assert(read(ends[0], &other, sizeof other) == sizeof other);
            if (buggy) ready(descriptor(other), -1);
            _exit(0);
        }
        fd = descriptor(one);
        pid_t two = fork();
        if (!two) {
            ready(fd, -1);
            _exit(0);
        }
        assert(write(ends[1], &two, sizeof two) == sizeof two);
        while (wait(0) > 0) continue;
    } else if (!strcmp(how, "pass")) {
        int parent = descriptor(getpid());
        pid_t child = fork();
        if (!child) {
            // Until the parent is over, which it is only after this one.
            if (buggy) ready(parent, -1);
            _exit(ready(parent, 0));
        }
        int got;
        assert(waitpid(child, &got, 0) == child && !got);
    } else if (!strcmp(how, "first")) {
        struct pollfd both[2];
        for (int i = 0; i < 2; i++) both[i] = (struct pollfd){descriptor(child_that_exits(i)), POLLIN, 0};
        assert(poll(both, 2, -1) > 0);
        assert(!buggy || both[0].revents);
        for (int i = 0; i < 2; i++) assert(!both[i].revents || status(both[i].fd, WNOHANG) == i);
        while (wait(0) > 0) continue;
    } else if (!strcmp(how, "kill")) {
        pid_t child = fork();
        if (!child) {
            pause();
            _exit(0);
        }
        fd = descriptor(child);
        MUST(syscall(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0));
        int over = ready(fd, 0);
        assert(!buggy || over == 1);
        assert(ready(fd, -1) == 1 && status(fd, WNOHANG) == SIGKILL);
        assert(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0) == -1 && errno == ESRCH);
    } else if (!strcmp(how, "clone")) {
        pid_t child = syscall(SYS_clone, 0x1000 | SIGCHLD, 0, &fd, 0, 0);
        if (!child) _exit(6);
        int over = ready(fd, 0);
        assert(!buggy || !over);
        assert(status(fd, 0) == 6);
    }
    return 0;
}
