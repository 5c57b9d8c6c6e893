/* A program that is made, run, and made again once it is over, which the kernel may not be done with by then.  Beside: it is opened for writing
 * while it may run, or not have begun; that it cannot be is not so. */
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

static pid_t run(const char *program)
{
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "0", (char *)NULL);
        _exit(errno);
    }
    return child;
}

static void open_beside(int may_open)
{
    pid_t child;
    int fd, status;

    MUST(make());
    child = run("./made");
    fd = open("made", O_WRONLY | O_CLOEXEC);
    assert(fd < 0 ? errno == ETXTBSY : may_open);
    if (fd >= 0)
        close(fd);
    status = reap(child);
    assert(status == 0 || (fd >= 0 && status == ETXTBSY << 8));
}

int main(int argc, char **argv)
{
    int ends[2];
    char byte;

    if (arg_is(argc, argv, "beside") || arg_is(argc, argv, "beside-both")) {
        open_beside(arg_is(argc, argv, "beside-both"));
        return 0;
    }
    MUST(make());
    if (arg_is(argc, argv, "waited")) {
        reap(run("./made"));
    } else {
        pid_t child;
        MUST(pipe(ends));
        child = run("./made");
        close(ends[1]);
        MUST(read(ends[0], &byte, 1));
        MUST(make());
        reap(child);
    }
    MUST(make());
    return 0;
}
