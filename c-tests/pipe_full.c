/* A write to a full pipe waits for room. Natively it then needs a page of its own, though what another one has written meanwhile leaves room behind it: it
 * waits on, for ever if nobody reads. "alone": the same
 * thread has written that, so it does not wait. */
#include "t.h"
#include <fcntl.h>

static int ends[2];
static char page[4096];

static void *writes(void *unused)
{
    MUST(write(ends[1], "some", 4) != 4);
    return unused;
}

static void *reads(void *unused)
{
    MUST(read(ends[0], page, sizeof page) != sizeof page);
    return unused;
}

int main(int argc, char **argv)
{
    MUST(pipe(ends));
    MUST(fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096);
    MUST(write(ends[1], page, sizeof page) != sizeof page);
    pthread_t t = go(arg_is(argc, argv, "two") ? writes : reads, NULL);
    if (arg_is(argc, argv, "two")) {
        MUST(read(ends[0], page, sizeof page) != sizeof page);
        MUST(write(ends[1], "more", 4) != 4);
    } else {
        MUST(write(ends[1], "more", 4) != 4);
        MUST(write(ends[1], "last", 4) != 4);
    }
    join(t);
    return 0;
}
