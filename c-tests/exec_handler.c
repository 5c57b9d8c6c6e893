/* Handlers of signals that come to a process which only executes another program, forks, or does so in the handler itself.  Buggy: no handler
 * is taken to run before the exec of a new child, or before its fork.  Fixed: the signal is blocked there, or the child has told that it is
 * where no handler runs any more. */
#include "t.h"
#include <signal.h>

static volatile sig_atomic_t came;

static void ends(int signal)
{
    (void)signal;
    _exit(7);
}

static void notes(int signal)
{
    (void)signal;
    came = 1;
}

static void on(int signal, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    MUST(sigaction(signal, &action, NULL));
}

static void execute(void)
{
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
}

int main(int argc, char **argv)
{
    sigset_t set;
    pid_t child;
    int status;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    on(SIGUSR1, arg_is(argc, argv, "forks") ? notes : ends);
    if (arg_is(argc, argv, "fixed"))
        MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    child = fork();
    if (child == 0) {
        if (arg_is(argc, argv, "forks")) {
            pid_t grandchild = fork();
            if (grandchild == 0)
                _exit(came ? 3 : 4);
            _exit(WEXITSTATUS(reap(grandchild)));
        }
        execute();
    }
    MUST(kill(child, SIGUSR1));
    status = reap(child);
    if (arg_is(argc, argv, "forks"))
        assert(status != 3 << 8);
    else if (arg_is(argc, argv, "fixed"))
        assert(status == 0);
    else if (arg_is(argc, argv, "all"))
        assert(status == 0 || status == SIGUSR1 || status == 7 << 8);
    else
        assert(status != 7 << 8);
    return 0;
}
