/* fstat of the reading end of a pipe beside a close of it: what fstat has found is there until it returns, also where its last step is a look at the flags,
 * which another thread sets. Then it is fstat that lets the pipe go, and who polls the other end hears of it. */
#include "t.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

static int ends[2], copy;
static short told;

static void *copies(void *unused)
{
    struct pollfd fd = { ends[0], POLLIN, 0 };
    copy = dup(ends[1]);
    poll(&fd, 1, -1);
    told = fd.revents;
    return unused;
}

static void *looks(void *unused)
{
    struct stat stat;
    fstat(ends[0], &stat);
    return unused;
}

int main(void)
{
    MUST(pipe(ends));
    pthread_t t = go(copies, NULL), u = go(looks, NULL);
    MUST(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    MUST(close(ends[0]));
    join(t);
    join(u);
    assert(told == 0 || told == POLLNVAL || told == POLLHUP || told == POLLERR);
    return 0;
}
