/* Calls on what nobody else uses are places for the handler of a timer: the handler runs after the call of setitimer and before that on a
 * descriptor of the program's own has done anything. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>

static volatile int handled;

static void handler(int unused)
{
    (void)unused;
    handled = 1;
}

int main(int argc, char **argv)
{
    struct itimerval value = { .it_value = { 0, 1000 } };
    struct itimerspec in_a_while = { .it_value = { 1, 0 } }, left;
    int pipes[2], fd = timerfd_create(CLOCK_MONOTONIC, 0), sock = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(pipe(pipes));
    MUST(signal(SIGALRM, handler) == SIG_ERR || setitimer(ITIMER_REAL, &value, NULL));
    int before = handled;
    if (arg_is(argc, argv, "set")) MUST(timerfd_settime(fd, 0, &in_a_while, NULL));
    if (arg_is(argc, argv, "get")) MUST(timerfd_gettime(fd, &left));
    if (arg_is(argc, argv, "flags")) MUST(fcntl(pipes[0], F_SETFL, O_NONBLOCK));
    if (arg_is(argc, argv, "size")) MUST(fcntl(pipes[0], F_GETPIPE_SZ) < 0);
    if (arg_is(argc, argv, "name")) MUST(getsockname(sock, &(struct sockaddr) { 0 }, &(socklen_t) { sizeof(struct sockaddr) }));
    assert(before || !handled);
    return 0;
}
