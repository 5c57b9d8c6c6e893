/* A handler of SIGCHLD that collects all children, and a main program that waits for one of them itself: either of the two
 * finds it gone. Fixed: SIGCHLD is blocked from before the child is created until it has been waited for. */
#include <signal.h>

#include "t.h"

static void handler(int signal)
{
    int saved = errno;
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    errno = saved;
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigset_t set;
    int fixed = arg_is(argc, argv, "fixed");

    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (fixed)
        sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t child = fork_run(nothing);
    if (waitpid(child, NULL, 0) != child)
        abort();
    if (fixed)
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 0;
}
