/* A large send to a local socket of which the other end goes with a process that ends: after each piece there may be an error, or not. */
#include "t.h"
#include <sys/socket.h>

static char bytes[40000];

int main(void)
{
    int ends[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    if (fork() == 0)
        _exit(0);
    close(ends[1]);
    long n = send(ends[0], bytes, sizeof bytes, MSG_NOSIGNAL);
    assert(n > 0 || n == -1 && errno == EPIPE);
    assert(wait(NULL) > 0);
    return 0;
}
