/*
 * A thread that is asked to end is thought to get through a call that does nothing which others could tell, but is a cancellation point.
 * cancel_point CALL: random, lock (of a file that has no locks), splice (with an error), tee
 */
#include "t.h"
#include <fcntl.h>
#include <sys/random.h>

static const char *what;
static int ends[2], done;

static void *calls(void *arg)
{
    char all[8];
    if (strcmp(what, "random") == 0) getrandom(all, sizeof all, 0);
    if (strcmp(what, "lock") == 0) lockf(-1, F_LOCK, 0);
    if (strcmp(what, "splice") == 0) splice(-1, NULL, ends[1], NULL, 1, 0);
    if (strcmp(what, "tee") == 0) tee(-1, ends[1], 1, 0);
    done = 1;
    return arg;
}

/* libc loads what unwinds. */
static void *leaves(void *arg)
{
    pthread_exit(arg);
}

int main(int argc, char **argv)
{
    (void)argc;
    what = argv[1];
    MUST(pipe(ends));
    join(go(leaves, NULL));
    pthread_t t = go(calls, NULL);
    MUST(pthread_cancel(t));
    join(t);
    assert(done);
    return 0;
}
