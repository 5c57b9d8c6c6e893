/* O_NONBLOCK of either pipe is enough that tee does not wait, and may be set by another process just before. Fixed: it is not set. */
#include "t.h"
#include <fcntl.h>

int main(int argc, char **argv)
{
    int one[2], two[2];
    int buggy = argc > 1 && strcmp(argv[1], "buggy") == 0;

    MUST(pipe(one));
    MUST(pipe(two));
    pid_t child = fork();
    if (child == 0) {
        if (buggy)
            MUST(fcntl(two[1], F_SETFL, O_NONBLOCK));
        assert(write(one[1], "x", 1) == 1);
        _exit(0);
    }
    assert(tee(one[0], two[1], 1, 0) == 1);
    assert(waitpid(child, NULL, 0) == child);
    return 0;
}
