/* What is told a moment before or after something else, which is not explored but said. "pidfd": a descriptor of a process is ready before SIGCHLD is
   there. "stop": the parent is told later that its child has stopped. "edge": what makes an edge is seen with the edge before it, and makes one more
   event. "looks": two wait at an instance that watches the signals of one of them. Beside that: "handlers": a fork whose handlers (pthread_atfork)
   take a lock is explored. */
#include "t.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], instance;

static void prepare(void)
{
    MUST(pthread_mutex_lock(&m));
}

static void after(void)
{
    MUST(pthread_mutex_unlock(&m));
}

static void *thread(void *unused)
{
    struct epoll_event got;
    if (instance)
        epoll_wait(instance, &got, 1, -1);
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    sigset_t set;
    struct epoll_event event = { .events = EPOLLIN | EPOLLET }, got;
    pthread_t t;
    pid_t child;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    MUST(pipe(ends));
    if (arg_is(argc, argv, "edge")) {
        instance = epoll_create1(0);
        MUST(epoll_ctl(instance, EPOLL_CTL_ADD, ends[0], &event));
        t = go(thread, NULL);
        assert(write(ends[1], "x", 1) == 1);
        close(ends[1]);
        join(t);
        return 0;
    }
    if (arg_is(argc, argv, "handlers")) {
        MUST(pthread_atfork(prepare, after, after));
        t = go(thread, NULL);
        child = fork();
        if (child == 0)
            _exit(0);
        assert(waitpid(child, NULL, 0) == child);
        join(t);
        return 0;
    }
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    if (arg_is(argc, argv, "looks")) {
        int signals = signalfd(-1, &set, 0);
        instance = epoll_create1(0);
        event.events = EPOLLIN;
        MUST(epoll_ctl(instance, EPOLL_CTL_ADD, signals, &event));
        child = fork();
        if (child == 0) {
            epoll_wait(instance, &got, 1, -1);
            _exit(0);
        }
        kill(getpid(), SIGUSR1);
        assert(epoll_wait(instance, &got, 1, -1) == 1);
        kill(child, SIGKILL);
        assert(waitpid(child, NULL, 0) == child);
        return 0;
    }
    child = fork();
    if (child == 0) {
        if (arg_is(argc, argv, "stop"))
            pause();
        _exit(0);
    }
    if (arg_is(argc, argv, "pidfd")) {
        struct pollfd of = { .fd = syscall(SYS_pidfd_open, child, 0), .events = POLLIN };
        assert(poll(&of, 1, -1) == 1);
    } else {
        kill(child, SIGSTOP);
        assert(waitpid(child, NULL, WUNTRACED) == child);
        kill(child, SIGKILL);
    }
    MUST(sigpending(&set));
    assert(waitpid(child, NULL, 0) == child);
    return 0;
}
