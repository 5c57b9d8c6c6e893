/* A descriptor that one thread closes while another is about to use it: the call fails, or it holds what it has found, to
 * its end. "ebadf", "reads", "waits": the outcome that is to be found shows as an assertion; "held": what was looked up before the close is
 * read though; "partial": a write in several pieces goes on; "twice": of two that close one number one fails; "stat": calls that
 * are no operations look numbers up too; "fixed": the close comes after the join. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

static int ends[2];
static char buffer[3 * 4096];
static long result;
static int error;

static void *reads(void *arg)
{
    char c;
    result = read(ends[0], &c, 1);
    error = errno;
    return arg;
}

static void *writes(void *arg)
{
    result = write(ends[1], buffer, sizeof buffer);
    error = errno;
    return arg;
}

static void *looks(void *arg)
{
    struct stat stat;
    result = fstat(ends[0], &stat);
    return arg;
}

static void *closes(void *arg)
{
    int closed = close(ends[0]);
    __atomic_fetch_add(&result, closed, __ATOMIC_SEQ_CST);
    return arg;
}


int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    MUST(pipe(ends));
    if (arg_is(argc, argv, "partial")) {
        MUST(fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096);
        pthread_t t = go(writes, NULL);
        MUST(close(ends[1]));
        long n = 0;
        for (long more; (more = read(ends[0], buffer, sizeof buffer)) > 0;)
            n += more;
        join(t);
        assert(result == (long)sizeof buffer ? n == result : result == -1 && error == EBADF && n == 0);
        return 0;
    }
    if (arg_is(argc, argv, "twice")) {
        pthread_t t = go(closes, NULL), u = go(closes, NULL);
        join(t);
        join(u);
        assert(result == -1);
        return 0;
    }
    if (arg_is(argc, argv, "stat")) {
        pthread_t t = go(looks, NULL);
        MUST(close(ends[0]));
        join(t);
        assert(result == 0);
        return 0;
    }
    int held = arg_is(argc, argv, "held") || arg_is(argc, argv, "waits");
    if (!held)
        MUST(write(ends[1], "x", 1) != 1);
    pthread_t t = go(reads, NULL);
    if (arg_is(argc, argv, "fixed")) {
        join(t);
        MUST(close(ends[0]));
        assert(result == 1);
        return 0;
    }
    MUST(close(ends[0]));
    if (arg_is(argc, argv, "held")) {
        /* It is broken if nobody has it any more. */
        long n = write(ends[1], "x", 1);
        join(t);
        assert(n == 1 ? result == 1 : errno == EPIPE && result == -1 && error == EBADF);
        return 0;
    }
    join(t);
    if (arg_is(argc, argv, "ebadf"))
        assert(result == 1);
    if (arg_is(argc, argv, "reads"))
        assert(result == -1);
    return 0;
}
