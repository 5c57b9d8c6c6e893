/* Whoever kills a group kills all of it: fork makes nobody once a fatal signal is on its way (kernel/fork.c, copy_process). The reader comes to the
   end of the pipe, however the fork and the kill fall. "buggy": the grandchild leaves the group first. */
#include "t.h"

int main(int argc, char **argv)
{
    int buggy = argc > 1 && !strcmp(argv[1], "buggy"), out[2], ready[2];
    char c;
    MUST(pipe(out));
    MUST(pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        close(out[0]);
        close(ready[0]);
        assert(1 == write(ready[1], "x", 1));
        signal(SIGUSR1, SIG_IGN);
        if (fork() == 0) {
            if (buggy)
                setpgid(0, 0);
            for (;;)
                pause();
        }
        for (;;)
            pause();
    }
    close(out[1]);
    close(ready[1]);
    assert(1 == read(ready[0], &c, 1));
    MUST(kill(-child, SIGKILL));
    assert(waitpid(child, NULL, 0) == child);
    assert(read(out[0], &c, 1) == 0);
    return 0;
}
