/* A call of splice holds both of its pipes until it is over, though its last operation is about one of them: natively a write to the first one
   succeeds while the call waits for room in the second, whose reader has closed the descriptor that the call was given, and fails after it.
   "buggy": main takes it to fail always. "late": to succeed always. */
#define _GNU_SOURCE
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>

static int one[2], two[2];

static void *moves(void *unused)
{
    long n = splice(one[0], NULL, two[1], NULL, 1, 0);
    assert(n == 1 || n == -1 && errno == EBADF);
    return unused;
}

int main(int argc, char **argv)
{
    int left = 1;

    signal(SIGPIPE, SIG_IGN);
    MUST(pipe(one));
    MUST(pipe(two));
    assert(write(one[1], "x", 1) == 1);
    pthread_t t = go(moves, NULL);
    MUST(close(one[0]));
    MUST(ioctl(one[1], FIONREAD, &left));
    long n = write(one[1], "y", 1);
    assert(n == 1 || n == -1 && errno == EPIPE);
    if (argc > 1 && strcmp(argv[1], "buggy") == 0)
        assert(!(left == 0 && n == 1));
    if (argc > 1 && strcmp(argv[1], "late") == 0)
        assert(!(left == 0 && n == -1));
    join(t);
    return 0;
}
