/* A process waits with sigwait for a signal that it has not blocked. One that ends the process does so, whether the wait has begun or not
   (kernel/signal.c, complete_signal: what is waited for counts as blocked only if it was before). "blocked": then it is taken. */
#include "t.h"
#include <signal.h>

int main(int argc, char **argv)
{
    int blocked = arg_is(argc, argv, "blocked"), status, got;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (blocked)
        MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    pid_t child = fork();
    if (child == 0) {
        MUST(sigwait(&set, &got));
        _exit(3);
    }
    MUST(kill(child, SIGTERM));
    assert(waitpid(child, &status, 0) == child);
    assert(blocked ? WIFEXITED(status) && WEXITSTATUS(status) == 3 : WIFSIGNALED(status));
    return 0;
}
