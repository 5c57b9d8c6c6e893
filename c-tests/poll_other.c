/* A thread waits in poll for a pipe. Another one writes to it, closes that end, and the number is given to something else before the first one
 * looks again: natively that is asked then. "write": the other end, which has nothing to tell, so that the poll waits on; "ready": the end of
 * another pipe that can be read from; "select": the same with select. The
 * word behind it: "told": not what is there to read; "closed": the number is closed in the end, and that is not told. */
#include "t.h"
#include <poll.h>
#include <sys/select.h>

static int pipes[2][2];
static int with_select, result, told;

static void *waits(void *unused)
{
    if (with_select) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pipes[0][0], &set);
        result = select(pipes[0][0] + 1, &set, NULL, NULL, NULL);
        told = result < 0 ? errno : FD_ISSET(pipes[0][0], &set);
    } else {
        struct pollfd asked = {pipes[0][0], POLLIN, 0};
        result = poll(&asked, 1, -1);
        told = asked.revents;
    }
    return unused;
}

int main(int argc, char **argv)
{
    MUST(pipe(pipes[0]) | pipe(pipes[1]));
    with_select = arg_is(argc, argv, "select");
    MUST(write(pipes[1][1], "x", 1) != 1);
    pthread_t t = go(waits, NULL);
    MUST(write(pipes[0][1], "x", 1) != 1);
    MUST(close(pipes[0][0]));
    MUST(dup(pipes[arg_is(argc, argv, "write") ? 0 : 1][arg_is(argc, argv, "write") ? 1 : 0]) != pipes[0][0]);
    if (argc > 2 && strcmp(argv[2], "closed") == 0)
        MUST(close(pipes[0][0]));
    join(t);
    if (argc > 2 && strcmp(argv[2], "told") == 0)
        assert(told != POLLIN);
    if (argc > 2 && strcmp(argv[2], "closed") == 0)
        assert(told != POLLNVAL);
    return 0;
}
