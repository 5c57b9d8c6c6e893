/* A loop that waits for a SIGCHLD handler with pause. Buggy: the child may end between the test and the pause, which nothing ends
 * then. Fixed: the signal comes within sigsuspend only. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t.h"

static volatile sig_atomic_t died;

static void handler(int signal)
{
    (void)signal;
    died = 1;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    sigset_t child, before;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);
    if (!arg_is(argc, argv, "buggy"))
        MUST(sigprocmask(SIG_BLOCK, &child, &before));
    if (fork() == 0)
        _exit(0);
    while (!died) {
        if (arg_is(argc, argv, "buggy"))
            pause();
        else
            sigsuspend(&before);
    }
    MUST(wait(NULL) > 0 ? 0 : -1);
    return 0;
}
