/* Calls that make descriptors fail with EBADF for one that was closed just before, though its number is the next to be given; what is
 * asked of a socket is answered though somebody closes it meanwhile. */
#include "t.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int fd;

static void *closes(void *arg)
{
    (void)arg;
    MUST(close(fd));
    return 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof name;
    int result = 0, number = 0;
    char kind = argc > 1 ? argv[1][0] : 'a';
    if (kind == 'o') {
        fd = open("/", O_RDONLY | O_DIRECTORY);
    } else {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        MUST(bind(fd, (void *)&name, sizeof name));
        MUST(listen(fd, 1));
    }
    pthread_t other = go(closes, 0);
    switch (kind) {
    case 'a': result = accept(fd, 0, 0); break;
    case 'o': result = openat(fd, "not there", O_RDONLY); break;
    case 'n': result = getsockname(fd, (void *)&name, &len); break;
    case 'p': result = getpeername(fd, (void *)&name, &len); break;
    case 'g': result = getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, (len = sizeof number, &len)); break;
    }
    int error = errno;
    join(other);
    assert(result == 0 || error == EBADF || error == (kind == 'a' ? EAGAIN : kind == 'o' ? ENOENT : ENOTCONN));
    return 0;
}
