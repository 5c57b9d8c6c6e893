/* What a call on a local stream sees of what others do while it is under way.  reset: the other end goes with data unread, and a send that waits
 * for room is told of a reset; one that comes later is not.  refill: a receive gets what is sent into the room that it makes. */
#include "t.h"
#include <signal.h>
#include <sys/socket.h>

static int pair[2];

static void fill(void)
{
    static char some[4096];
    while (send(pair[0], some, sizeof some, MSG_DONTWAIT) > 0)
        ;
}

static void *closes(void *unused)
{
    (void)unused;
    close(pair[1]);
    return NULL;
}

static void *sends(void *unused)
{
    (void)unused;
    send(pair[0], "x", 1, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    static char all[1 << 20];
    int small = 4608;
    ssize_t before, n;
    pthread_t t;
    signal(SIGPIPE, SIG_IGN);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    fill();
    if (arg_is(argc, argv, "reset")) {
        t = go(closes, NULL);
        n = send(pair[0], "x", 1, 0);
        assert(n == -1 && errno == EPIPE);
    } else {
        before = recv(pair[1], all, sizeof all, MSG_PEEK | MSG_DONTWAIT);
        t = go(sends, NULL);
        n = recv(pair[1], all, sizeof all, 0);
        assert(n == before);
    }
    join(t);
    return 0;
}
