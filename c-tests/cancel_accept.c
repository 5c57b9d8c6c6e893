/*
 * A thread in accept is asked to end, beside one that connects: libc loads what unwinds first, which uses descriptors.  cancel_accept VARIANT
 *   buggy   the thread is thought not to be cancelled, since there is a connection
 *   fixed   it is cancelled, or has accepted
 */
#include <sys/socket.h>
#include <sys/un.h>

#include "t.h"

static int listener, accepted;

static void *accepts(void *arg)
{
    accepted = accept(listener, NULL, NULL) >= 0;
    return arg;
}

int main(int argc, char **argv)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    socklen_t len = sizeof name;
    void *result;
    pthread_t t;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(listener, (void *)&name, sizeof name.sun_family));
    MUST(listen(listener, 1));
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(getsockname(listener, (void *)&name, &len));
    t = go(accepts, NULL);
    MUST(connect(client, (void *)&name, len));
    MUST(pthread_cancel(t));
    MUST(pthread_join(t, &result));
    if (arg_is(argc, argv, "buggy"))
        assert(result != PTHREAD_CANCELED);
    else
        assert(result == PTHREAD_CANCELED || accepted);
    return 0;
}
