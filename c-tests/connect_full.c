/* A TCP connection that is asked for while the listener's queue is full: the request comes again a second later natively. Here it is
   let in as soon as there is room, which is named. */
#include "t.h"
#include <netinet/in.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), clients = arg_is(argc, argv, "full") ? 2 : 1;
    MUST(bind(listener, (void *)&a, len));
    MUST(listen(listener, 0));
    MUST(getsockname(listener, (void *)&a, &len));
    for (int i = 0; i < clients; i++) {
        int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert(connect(client, (void *)&a, len) == -1 && errno == EINPROGRESS);
    }
    assert(accept(listener, NULL, NULL) >= 0);
    assert(accept(listener, NULL, NULL) >= 0 || errno == EAGAIN);
    return 0;
}
