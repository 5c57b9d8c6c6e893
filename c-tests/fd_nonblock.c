/* O_NONBLOCK is set on a description while another thread or process is about to use it: a call looks at it when it begins. "again": the
 * read fails with EAGAIN; "waits": it has begun, and waits on; "process": the same over a fork; "getfl": who asks for the flags; "lost":
 * two that add a flag each, by asking and setting, and one is lost; "fixed": set before anybody else is there. */
#include "t.h"
#include <fcntl.h>

static int ends[2];
static long result;

static void *reads(void *arg)
{
    char c;
    result = read(ends[0], &c, 1);
    assert(result == 1 || errno == EAGAIN);
    return arg;
}

static void *asks(void *arg)
{
    result = fcntl(ends[0], F_GETFL) & O_NONBLOCK;
    return arg;
}

static void *adds(void *arg)
{
    int flags = fcntl(ends[0], F_GETFL);
    MUST(fcntl(ends[0], F_SETFL, flags | (arg ? O_APPEND : O_NONBLOCK)));
    return NULL;
}

int main(int argc, char **argv)
{
    MUST(pipe(ends));
    if (arg_is(argc, argv, "process")) {
        pid_t child = fork();
        if (child == 0) {
            reads(NULL);
            _exit(result == 1 ? 0 : 1);
        }
        MUST(fcntl(ends[0], F_SETFL, O_NONBLOCK));
        MUST(write(ends[1], "x", 1) != 1);
        int status;
        MUST(waitpid(child, &status, 0) != child);
        assert(status == 0);
        return 0;
    }
    if (arg_is(argc, argv, "fixed"))
        MUST(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    pthread_t t;
    if (arg_is(argc, argv, "lost")) {
        t = go(adds, NULL);
        adds(ends);
        join(t);
        assert((fcntl(ends[0], F_GETFL) & (O_NONBLOCK | O_APPEND)) == (O_NONBLOCK | O_APPEND));
        return 0;
    }
    t = go(arg_is(argc, argv, "getfl") ? asks : reads, NULL);
    if (!arg_is(argc, argv, "fixed"))
        MUST(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    if (arg_is(argc, argv, "again"))
        MUST(write(ends[1], "x", 1) != 1);
    join(t);
    if (arg_is(argc, argv, "again"))
        assert(result == 1);
    if (arg_is(argc, argv, "getfl"))
        assert(result == 0);
    return 0;
}
