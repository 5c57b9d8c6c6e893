/* A lost wake-up: the signal comes between the look at the flag and pause. Fixed: the signal is blocked, and sigsuspend
 * lets it in and waits in one step. */
#include <signal.h>

#include "t.h"

static volatile sig_atomic_t came;

static void handler(int signal)
{
    (void)signal;
    came = 1;
}

static void child(void)
{
    MUST(kill(getppid(), SIGUSR1));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    sigset_t set, old;
    int fixed = arg_is(argc, argv, "fixed");

    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (fixed)
        sigprocmask(SIG_BLOCK, &set, &old);
    pid_t pid = fork_run(child);
    if (fixed) {
        while (!came)
            if (sigsuspend(&old) != -1 || errno != EINTR)
                abort();
    } else if (!came) {
        if (pause() != -1 || errno != EINTR)
            abort();
    }
    if (!came)
        abort();
    reap(pid);
    return 0;
}
