/* After a signal that dumps core, of another process, a thread that need not take it goes on until another one has. */
#include "t.h"
#include <signal.h>

static void *writes(void *pipe)
{
    int i;
    for (i = 0; i < 3; i++)
        if (write(*(int *)pipe, "x", 1) != 1) abort();
    return NULL;
}

int main(int argc, char **argv)
{
    int news[2], start[2], status, n = 0;
    char c;
    pid_t pid;
    MUST(pipe(news));
    MUST(pipe(start));
    pid = fork();
    if (pid == 0) {
        close(news[0]);
        if (read(start[0], &c, 1) != 1) abort();
        if (arg_is(argc, argv, "alone")) {
            writes(&news[1]);
        } else {
            join(go(writes, &news[1]));
        }
        _exit(0);
    }
    close(news[1]);
    if (write(start[1], "s", 1) != 1) abort();
    MUST(kill(pid, SIGQUIT));
    while (read(news[0], &c, 1) == 1)
        n++;
    status = reap(pid);
    assert(WIFSIGNALED(status) || n == 3);
    return 0;
}
