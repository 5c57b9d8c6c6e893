/* A child ends whose parent ignores SIGCHLD, by default. libc blocks all signals in the first thread while it creates the second: where that
 * child ends just then, the signal is not ignored at once, and wakes the second thread, whose epoll_wait fails with EINTR though no handler is
 * there. That is said ("created"), but not where the child is over before ("reaped"), or the wait goes on by itself ("restarts": read).
 * "sent": another thread sends the process a signal that is ignored, and there is no child.
 * "timed": a wait with a time; the search need not try the end of the child within it, and says so all the same.
 * "ever": nobody ends the wait, which that would end. */
#include "t.h"
#include <signal.h>
#include <sys/epoll.h>

static int epoll, pipes[2], reads, timed;

static void *waits(void *unused)
{
    struct epoll_event event;
    char c;
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    if (timed)
        MUST(sigtimedwait(&set, NULL, &(struct timespec){ .tv_nsec = 1000000 }) != -1 || errno != EAGAIN);
    else if (reads)
        MUST(read(pipes[0], &c, 1) != 1);
    else
        MUST(epoll_wait(epoll, &event, 1, -1) != 1);
    return unused;
}

static void *sends(void *unused)
{
    MUST(kill(getpid(), SIGURG));
    return unused;
}

int main(int argc, char **argv)
{
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    reads = arg_is(argc, argv, "restarts");
    timed = arg_is(argc, argv, "timed");
    struct epoll_event event = {.events = EPOLLIN};
    MUST((epoll = epoll_create1(0)) < 0 || pipe(pipes));
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event));
    if (arg_is(argc, argv, "sent")) {
        pthread_t sender = go(sends, NULL), waiter = go(waits, NULL);
        MUST(write(pipes[1], "x", 1) != 1);
        join(sender), join(waiter);
        return 0;
    }
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (arg_is(argc, argv, "reaped"))
        MUST(reap(child));
    pthread_t t = go(waits, NULL);
    MUST(!arg_is(argc, argv, "ever") && write(pipes[1], "x", 1) != 1);
    join(t);
    if (!arg_is(argc, argv, "reaped"))
        MUST(reap(child));
    return 0;
}
