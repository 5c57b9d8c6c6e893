/* A program that is made, run, and made again once it is over, which the kernel may not be done with by then. */
#include "t.h"
#include <fcntl.h>

static int make(void)
{
    static char part[65536];
    int from = open("/bin/sleep", O_RDONLY), to = open("made", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0700);
    ssize_t n;

    if (to < 0)
        return errno;
    while ((n = read(from, part, sizeof part)) > 0)
        MUST(write(to, part, n) != n);
    close(from);
    close(to);
    return 0;
}

int main(int argc, char **argv)
{
    int ends[2];
    char byte;

    for (int i = 0; i < 2; i++) {
        pid_t child;
        MUST(make());
        MUST(pipe(ends));
        child = fork();
        if (child == 0) {
            close(ends[0]);
            execl("./made", "made", "0", (char *)NULL);
            _exit(9);
        }
        close(ends[1]);
        if (arg_is(argc, argv, "end"))
            MUST(read(ends[0], &byte, 1));
        MUST(reap(child));
        close(ends[0]);
    }
    return 0;
}
