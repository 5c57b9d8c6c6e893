/* Local sockets that were shut down: one that was to listen listens again, and nobody comes in; of datagrams only who waits is told. */
#include "t.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len = sizeof name;
    int pair[2], listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte;
    MUST(bind(listener, (void *)&name, sizeof name.sun_family));
    MUST(getsockname(listener, (void *)&name, &len));
    MUST(listen(listener, 1));
    MUST(shutdown(listener, SHUT_RDWR));
    MUST(listen(listener, 2));
    assert(connect(client, (void *)&name, len) == -1 && errno == ECONNREFUSED);
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    MUST(shutdown(pair[0], SHUT_RD));
    assert(recv(pair[0], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    assert(recv(pair[0], &byte, 1, 0) == 0);
    return 0;
}
