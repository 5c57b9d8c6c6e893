/* A child ends while the thread that created it blocks SIGCHLD, which has no handler: so it is pending, and another thread is woken to
 * take it. The kernel begins the wait of that one again (poll, read, nanosleep, waitpid), but for those that fail with EINTR (epoll). */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include "t.h"

static void nothing(void)
{
}

static void *creates(void *arg)
{
    sigset_t child;

    (void)arg;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    MUST(pthread_sigmask(SIG_BLOCK, &child, NULL));
    fork_run(nothing);
    return NULL;
}

int main(int argc, char **argv)
{
    int nobody[2], waits = arg_is(argc, argv, "wait"), set;
    pthread_t creator;

    MUST(pipe(nobody));
    set = epoll_create1(0);
    creator = go(creates, NULL);
    if (arg_is(argc, argv, "poll")) {
        struct pollfd input = {.fd = nobody[0], .events = POLLIN};
        assert(poll(&input, 1, 2) == 0);
    } else if (arg_is(argc, argv, "sleep")) {
        struct timespec ms = {.tv_nsec = 1000000};
        assert(nanosleep(&ms, NULL) == 0);
    } else if (arg_is(argc, argv, "epoll")) {
        struct epoll_event event;
        assert(epoll_wait(set, &event, 1, 2) == 0);
    } else if (waits) {
        int child = wait(NULL);
        assert(child > 0 || errno == ECHILD);
        waits = child > 0;
    }
    MUST(pthread_join(creator, NULL));
    if (!waits)
        assert(wait(NULL) > 0);
    return 0;
}
