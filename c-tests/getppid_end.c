/* A process whose parent ends at any moment. "alive": it takes it that the parent is still there. "gone": that it is not. "eof": that
 * a parent whose end of a pipe is closed is its parent no more; but descriptors are closed before children are given away. Fixed: asks
 * until it is another one than before the fork. */
#include <sched.h>

#include "t.h"

int main(int argc, char **argv)
{
    int eof = arg_is(argc, argv, "eof"), end[2];
    pid_t parent = getpid();
    char byte;

    if (eof)
        MUST(pipe(end));
    if (fork() != 0)
        _exit(0);
    if (arg_is(argc, argv, "alive"))
        assert(getppid() == parent);
    if (arg_is(argc, argv, "gone"))
        assert(getppid() != parent);
    if (eof) {
        close(end[1]);
        assert(read(end[0], &byte, 1) == 0);
        assert(getppid() != parent);
    }
    while (getppid() == parent)
        sched_yield();
    return 0;
}
