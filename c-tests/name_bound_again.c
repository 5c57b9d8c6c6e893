/* A local name that is taken away and bound again leads to who has bound it last, also where the file system gives the file the number
 * of the one before. */
#include "t.h"
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un name = {.sun_family = AF_UNIX};

static void *sends(void *arg)
{
    int from = socket(AF_UNIX, SOCK_DGRAM, 0);
    (void)arg;
    if (sendto(from, "x", 1, 0, (void *)&name, sizeof name) == -1)
        assert(errno == ENOENT || errno == ECONNREFUSED);
    return 0;
}

int main(void)
{
    char byte;
    int older = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), newer = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    snprintf(name.sun_path, sizeof name.sun_path, "/tmp/name_bound_again.%d", getpid());
    MUST(bind(older, (void *)&name, sizeof name));
    pthread_t other = go(sends, 0);
    MUST(unlink(name.sun_path));
    MUST(bind(newer, (void *)&name, sizeof name));
    join(other);
    ssize_t came = recv(newer, &byte, 1, 0);
    MUST(unlink(name.sun_path));
    assert(came == -1);
    return 0;
}
