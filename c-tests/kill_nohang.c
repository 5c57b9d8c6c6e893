/* kill(2) does not wait for the end of whom it kills.  Buggy: who has killed its child takes it for granted that the child is over, and
 * asks without waiting.  Fixed: it waits; or asks again and again. */
#include "t.h"
#include <sched.h>
#include <signal.h>

int main(int argc, char **argv)
{
    int status, to[2];
    pid_t child;
    char byte;

    MUST(pipe(to));
    child = fork();
    if (child == 0) {
        close(to[1]);
        /* Ends by the signal, or by the end of the pipe. */
        _exit(read(to[0], &byte, 1) != 0);
    }
    MUST(kill(child, SIGKILL));
    if (arg_is(argc, argv, "buggy"))
        assert(waitpid(child, &status, WNOHANG) == child);
    else if (arg_is(argc, argv, "polls"))
        while (waitpid(child, &status, WNOHANG) == 0)
            sched_yield();
    else
        MUST(waitpid(child, &status, 0) != child);
    assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return 0;
}
