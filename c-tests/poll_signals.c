/* poll and select ask for signals once they have found nothing, also where they are not to wait; a timer that may fire has not yet. */
#include "t.h"
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/timerfd.h>

static void handler(int signal)
{
    (void)signal;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct timespec none = {0, 0};
    struct timeval nothing = {0, 0};
    struct pollfd one = {.events = POLLIN};
    sigset_t set, before;
    int pair[2], result = 0;
    char kind = argc > 1 ? argv[1][0] : 'p';
    pid_t parent = getpid(), child;
    MUST(sigaction(SIGUSR1, &action, 0));
    MUST(pipe(pair));
    one.fd = pair[0];
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (kind == 'm') { /* It is pending, and only the mask of the call lets it in. */
        MUST(sigprocmask(SIG_BLOCK, &set, &before));
        raise(SIGUSR1);
        assert(ppoll(&one, 1, &none, &before) == -1 && errno == EINTR);
        raise(SIGUSR1);
        assert(pselect(0, 0, 0, 0, &none, &before) == -1 && errno == EINTR);
        raise(SIGUSR1);
        assert(write(pair[1], "x", 1) == 1 && ppoll(&one, 1, &none, &before) == 1);
        return 0;
    }
    if (kind == 't') {
        struct itimerspec time = {{0, 0}, {3, 0}};
        one.fd = timerfd_create(CLOCK_MONOTONIC, 0);
        MUST(timerfd_settime(one.fd, 0, &time, 0));
    }
    child = fork();
    if (child == 0) {
        kill(parent, SIGUSR1);
        _exit(0);
    }
    switch (kind) {
    case 'p': result = poll(&one, 1, 0); break;
    case 'n': result = poll(0, 0, 0); break;
    case 's': result = select(0, 0, 0, 0, &nothing); break;
    case 't': result = poll(&one, 1, -1); break;
    }
    int error = errno;
    while (waitpid(child, 0, 0) == -1 && errno == EINTR)
        ;
    assert(!(result == -1 && error == EINTR));
    return 0;
}
