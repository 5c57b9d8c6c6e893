/* A connection of packets whose peer has gone with something unread: the error comes before all else, and once. */
#include "t.h"
#include <sys/socket.h>

static void gone(int p[2], int unread)
{
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p));
    if (unread) assert(send(p[1], "u", 1, 0) == 1);
    MUST(close(p[0]));
}

int main(void)
{
    static char large[300000];
    int p[2];
    char byte;
    gone(p, 1);
    assert(send(p[1], "q", 1, 0) == -1 && errno == ECONNRESET);
    assert(send(p[1], "q", 1, 0) == -1 && errno == EPIPE);
    assert(send(p[1], large, sizeof large, 0) == -1 && errno == EMSGSIZE);
    assert(recv(p[1], &byte, 1, 0) == 0);
    gone(p, 1);
    assert(send(p[1], large, sizeof large, 0) == -1 && errno == ECONNRESET);
    gone(p, 1);
    assert(recv(p[1], &byte, 1, 0) == -1 && errno == ECONNRESET);
    assert(send(p[1], "q", 1, 0) == -1 && errno == EPIPE);
    gone(p, 0);
    assert(send(p[1], "q", 1, 0) == -1 && errno == EPIPE);
    /* A stream is not told of it by a write. */
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
    assert(write(p[1], "u", 1) == 1);
    MUST(close(p[0]));
    assert(send(p[1], "q", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    assert(read(p[1], &byte, 1) == -1 && errno == ECONNRESET);
    return 0;
}
