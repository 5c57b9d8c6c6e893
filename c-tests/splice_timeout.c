/* A timeout of a socket that another thread sets beside splice and sendfile on it: a call that has begun before waits for ever. */
#include "t.h"
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>

static int pair[2];

static void *sets(void *which)
{
    struct timeval short_time = {0, 1000};
    MUST(setsockopt(pair[0], SOL_SOCKET, *(int *)which, &short_time, sizeof short_time));
    return NULL;
}

int main(int argc, char **argv)
{
    int in = SO_RCVTIMEO, ends[2];
    pthread_t t;
    ssize_t n;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(pipe(ends));
    t = go(sets, &in);
    if (arg_is(argc, argv, "fixed")) join(t);
    n = splice(pair[0], NULL, ends[1], NULL, 1, 0);
    assert(n == -1 && errno == EAGAIN);
    if (!arg_is(argc, argv, "fixed")) join(t);
    return 0;
}
