/* A call that asks about a descriptor (FIONREAD) has looked its number up, and holds what it stands for: another thread that sets flags of the
 * same description and closes the number then changes nothing for it. It finds the number closed, or answers. */
#include "t.h"
#include <fcntl.h>
#include <sys/ioctl.h>

static int p[2];

static void *closes(void *unused)
{
    MUST(fcntl(p[0], F_SETFL, O_NONBLOCK));
    MUST(close(p[0]));
    return unused;
}

int main(int argc, char **argv)
{
    int n = -1, m = -1, first, second;
    pthread_t t;
    MUST(pipe(p));
    assert(write(p[1], "xy", 2) == 2);
    t = go(closes, NULL);
    first = ioctl(p[0], FIONREAD, &n);
    second = ioctl(p[0], FIONREAD, &m);
    assert(first == 0 ? n == 2 : errno == EBADF);
    assert(second == 0 ? m == 2 : errno == EBADF);
    assert(first == 0 || second < 0);
    join(t);
    /* Both orders come. */
    if (arg_is(argc, argv, "closed")) assert(first == 0);
    if (arg_is(argc, argv, "between")) assert(first < 0 || second == 0);
    return 0;
}
