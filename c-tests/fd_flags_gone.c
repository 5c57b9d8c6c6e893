/* Flags of a number that stands for a pipe, then for nothing, then for a file that another thread has opened, and for nothing again. What
 * stands for nothing has no flags that threads could share. */
#include "t.h"
#include <fcntl.h>
#include <poll.h>

static int p[2];

static void *closes(void *unused)
{
    int fd;
    close(p[0]);
    fd = open("/dev/null", O_RDONLY);
    assert(fd == p[0]);
    close(p[0]);
    return unused;
}

static void *sets(void *unused)
{
    struct pollfd at = {p[0], POLLIN, 0};
    poll(&at, 1, 1);
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    poll(&at, 1, 1);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    MUST(pipe(p));
    assert(write(p[1], "x", 1) == 1);
    a = go(closes, NULL);
    b = go(sets, NULL);
    fcntl(p[0], F_GETFL);
    fcntl(p[0], F_SETFL, 0);
    fcntl(p[0], F_GETFD);
    join(a);
    join(b);
    return 0;
}
