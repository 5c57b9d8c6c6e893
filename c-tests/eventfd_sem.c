/* An eventfd as a semaphore between processes: two children take a unit each, the parent gives two in one write.
   Buggy: without EFD_SEMAPHORE the first read takes all, and the second child waits for ever. */
#include "t.h"
#include <sys/eventfd.h>

static int fd;

static void child(void)
{
    uint64_t v;
    if (read(fd, &v, sizeof v) != sizeof v || v == 0)
        abort();
}

int main(int argc, char **argv)
{
    uint64_t two = 2;
    pid_t a, b;

    fd = eventfd(0, arg_is(argc, argv, "fixed") ? EFD_SEMAPHORE : 0);
    a = fork_run(child);
    b = fork_run(child);
    if (write(fd, &two, sizeof two) != sizeof two)
        abort();
    assert(reap(a) == 0 && reap(b) == 0);
    return 0;
}
