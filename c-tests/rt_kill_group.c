/*
 * kill(0, SIGTERM): a signal to the own process group.
 *   handler  all processes have a handler for it
 *   child    the first process has, its child has not and dies of it
 *   none     nobody has: everybody dies of it
 */
#include "t.h"
#include <signal.h>

static sem_t *ready, *never;
static volatile sig_atomic_t got;

static void on_term(int sig)
{
    (void)sig;
    got++;
}

static void on_term_exit(int sig)
{
    (void)sig;
    _exit(3);
}

int main(int argc, char **argv)
{
    int none = arg_is(argc, argv, "none"), child = arg_is(argc, argv, "child"), status;
    pid_t pid;

    ready = shared(2 * sizeof *ready);
    never = ready + 1;
    MUST(sem_init(ready, 1, 0));
    MUST(sem_init(never, 1, 0));
    if (setpgid(0, 0) != 0 && getpgrp() != getpid()) /* nobody but us is to be hit */
        abort();
    pid = fork();
    if (pid == 0) {
        if (!none && !child)
            signal(SIGTERM, on_term_exit);
        MUST(sem_post(ready));
        while (sem_wait(never) != 0)
            assert(errno == EINTR);
        _exit(1);
    }
    if (!none)
        signal(SIGTERM, on_term);
    MUST(sem_wait(ready));
    puts("signalling the group");
    fflush(stdout);
    MUST(kill(0, SIGTERM));
    status = reap(pid);
    assert(got == 1);
    if (child)
        assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    else
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    puts("still here");
    return 0;
}
