/* Several descriptors that one call closes: exec, close_range.  The kernel releases what they stood for when the call returns, the highest
 * number first.  Buggy: the lower one is taken to be gone first.  Fixed: the higher one. */
#include "t.h"
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>

static int at_end(int fd)
{
    char byte;
    return read(fd, &byte, 1) == 0;
}

int main(int argc, char **argv)
{
    int low[2], high[2], ends, before;
    pid_t child;

    MUST(pipe2(low, O_CLOEXEC));
    MUST(pipe2(high, O_CLOEXEC));
    child = fork();
    if (child == 0) {
#ifdef RANGE
        close_range(low[0], high[1], 0);
        pause();
#else
        execl("/bin/true", "true", (char *)NULL);
#endif
        _exit(9);
    }
    close(low[1]);
    close(high[1]);
    MUST(fcntl(low[0], F_SETFL, O_NONBLOCK));
    MUST(fcntl(high[0], F_SETFL, O_NONBLOCK));
    if (arg_is(argc, argv, "buggy")) {
        ends = at_end(high[0]);
        before = at_end(low[0]);
        assert(!ends || before);
    } else {
        ends = at_end(low[0]);
        before = at_end(high[0]);
        assert(!ends || before);
    }
#ifdef RANGE
    MUST(kill(child, SIGKILL));
#endif
    reap(child);
    return 0;
}
