/* A TCP listener that was shut down: a port that the system had given it is free for others, one that it was bound to is not; it can
   listen again. */
#include "t.h"
#include <netinet/in.h>
#include <sys/socket.h>

static struct sockaddr_in name(int s)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    MUST(getsockname(s, (void *)&a, &len));
    return a;
}

static int tcp(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

/* Connects to it, and accepts. */
static void meets(int listener, struct sockaddr_in a)
{
    int client = tcp(), there;
    MUST(connect(client, (void *)&a, sizeof a));
    there = accept(listener, NULL, NULL);
    assert(there >= 0);
    close(client);
    close(there);
}

int main(void)
{
    struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}}, was;
    int s = tcp(), other = tcp(), client = tcp(), third = tcp();
    MUST(bind(s, (void *)&a, sizeof a));
    MUST(listen(s, 1));
    was = name(s);
    MUST(shutdown(s, SHUT_RDWR));
    assert(accept(s, NULL, NULL) == -1 && errno == EINVAL);
    assert(connect(client, (void *)&was, sizeof was) == -1 && errno == ECONNREFUSED);
    assert(name(s).sin_port == was.sin_port);
    MUST(bind(other, (void *)&was, sizeof was));
    assert(bind(s, (void *)&was, sizeof was) == -1 && errno == EADDRINUSE);
    assert(name(s).sin_addr.s_addr == 0);
    MUST(listen(s, 1));
    assert(name(s).sin_port != was.sin_port);
    close(s);
    /* The other was bound to it. */
    MUST(listen(other, 1));
    MUST(shutdown(other, SHUT_RD));
    assert(bind(third, (void *)&was, sizeof was) == -1 && errno == EADDRINUSE);
    assert(bind(other, (void *)&was, sizeof was) == -1 && errno == EINVAL);
    MUST(listen(other, 1));
    meets(other, was);
    /* And one that listens again without being bound anew, on its address. */
    s = tcp();
    MUST(bind(s, (void *)&a, sizeof a));
    MUST(listen(s, 1));
    was = name(s);
    MUST(shutdown(s, SHUT_RD));
    MUST(listen(s, 1));
    assert(name(s).sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    meets(s, name(s));
    MUST(shutdown(s, SHUT_RD));
    was = name(s);
    MUST(bind(s, (void *)&was, sizeof was));
    assert(bind(s, (void *)&was, sizeof was) == -1 && errno == EINVAL);
    MUST(listen(s, 1));
    meets(s, was);
    return 0;
}
