/* One thread has a bad pointer for what it reads, another wants to read too. A pipe keeps what there was no room for; a message
 * is gone, and the other may wait for ever. */
#include "t.h"
#include <sys/socket.h>

static int ends[2];
static char *volatile nowhere = (char *)8;

static void *reads_badly(void *unused)
{
    (void)unused;
    MUST(!(read(ends[0], nowhere, 1) == -1 && errno == EFAULT));
    return 0;
}

static void *reads(void *unused)
{
    char byte = 0;
    (void)unused;
    MUST(!(read(ends[0], &byte, 1) == 1 && byte == 'x'));
    return 0;
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "buggy"))
        MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    else
        MUST(pipe(ends));
    pthread_t bad = go(reads_badly, 0), good = go(reads, 0);
    MUST(write(ends[1], "x", 1) != 1);
    pthread_join(good, 0);
    /* For the one with the bad pointer, where it comes too late for the first. */
    MUST(write(ends[1], "x", 1) != 1);
    pthread_join(bad, 0);
    return 0;
}
