/* A local datagram socket that is not connected to its peer any more has lost what it had not received; the peer is told. */
#include "t.h"
#include <sys/socket.h>
#include <sys/un.h>

static int pair[2];

static void *closes(void *arg)
{
    (void)arg;
    MUST(close(pair[0]));
    return 0;
}

int main(int argc, char **argv)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len = sizeof name;
    int error = 0, third = socket(AF_UNIX, SOCK_DGRAM, 0);
    char byte;
    MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
    assert(send(pair[0], "a", 1, 0) == 1);
    if (arg_is(argc, argv, "race")) {
        pthread_t other = go(closes, 0);
        send(pair[1], "b", 1, 0);
        ssize_t got = recv(pair[1], &byte, 1, 0);
        join(other);
        assert(got == 1);
        return 0;
    }
    MUST(connect(pair[1], &none, sizeof none));
    assert(recv(pair[1], &byte, 1, 0) == -1 && errno == EAGAIN);
    len = sizeof error;
    MUST(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &error, &len));
    assert(error == ECONNRESET);
    /* One of a pair is found by a name that it gets later. */
    MUST(bind(pair[1], (void *)&name, sizeof name.sun_family));
    len = sizeof name;
    MUST(getsockname(pair[1], (void *)&name, &len));
    MUST(connect(third, (void *)&name, len));
    assert(send(third, "c", 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1 && byte == 'c');
    MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
    assert(send(pair[0], "a", 1, 0) == 1);
    closes(0);
    assert(send(pair[1], "b", 1, 0) == -1 && errno == ECONNREFUSED);
    assert(recv(pair[1], &byte, 1, 0) == -1 && errno == EAGAIN);
    assert(getpeername(pair[1], (void *)&name, &len) == -1 && errno == ENOTCONN);
    assert(send(pair[1], "b", 1, 0) == -1 && errno == ENOTCONN);
    return 0;
}
