/* An epoll instance watches the signals of the process that added the signal descriptor. A child that looks at the same instance has no such
   signal: the event leaves the list for both, and the parent waits for ever. "fixed": the child does not look. "waits": it waits for a while.
   "edges": a signal that is taken and sent again is a new edge. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/signalfd.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "buggy";
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    int signals = signalfd(-1, &set, 0), instance = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN }, got;
    MUST(epoll_ctl(instance, EPOLL_CTL_ADD, signals, &event));
    if (!strcmp(how, "edges")) {
        struct signalfd_siginfo info;
        event.events |= EPOLLET;
        MUST(epoll_ctl(instance, EPOLL_CTL_MOD, signals, &event));
        for (int i = 0; i < 2; i++) {
            MUST(kill(getpid(), SIGUSR1));
            assert(epoll_wait(instance, &got, 1, 0) == 1);
            assert(epoll_wait(instance, &got, 1, 0) == 0);
            assert(read(signals, &info, sizeof info) == sizeof info);
        }
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        if (strcmp(how, "fixed"))
            epoll_wait(instance, &got, 1, strcmp(how, "waits") ? 0 : 10);
        _exit(0);
    }
    MUST(strcmp(how, "raises") ? kill(getpid(), SIGUSR1) : raise(SIGUSR1));
    assert(waitpid(child, NULL, 0) == child);
    assert(epoll_wait(instance, &got, 1, -1) == 1);
    return 0;
}
