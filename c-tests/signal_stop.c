/* A child stops itself; its parent is told, lets it continue and is told that. Buggy: nobody continues it. */
#include <signal.h>

#include "t.h"

static void child(void)
{
    MUST(raise(SIGSTOP));
}

int main(int argc, char **argv)
{
    int status;
    pid_t pid = fork_run(child);
    if (arg_is(argc, argv, "fixed")) {
        if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
            abort();
        MUST(kill(pid, SIGCONT));
        if (waitpid(pid, &status, WCONTINUED) != pid)
            abort();
        if (WIFEXITED(status))
            return 0;
        if (!WIFCONTINUED(status))
            abort();
    }
    if (reap(pid) != 0)
        abort();
    return 0;
}
