/* A wait for a group finds out when it begins or is woken that there is no child left in it: not when the last one leaves. */
#include "t.h"
#include <signal.h>

static pid_t child;

static void handler(int signal)
{
    (void)signal;
}

static void *mover(void *arg)
{
    (void)arg;
    /* It may be over and waited for. */
    setpgid(child, child);
    return NULL;
}

int main(int argc, char **argv)
{
    int result, signal = arg_is(argc, argv, "signal") || arg_is(argc, argv, "restarts"), fixed = arg_is(argc, argv, "fixed");
    struct sigaction act = {.sa_handler = handler, .sa_flags = arg_is(argc, argv, "restarts") ? SA_RESTART : 0};
    pid_t own = getpid();
    MUST(sigaction(SIGUSR1, &act, NULL));
    child = fork();
    if (child == 0) {
        if (fixed) _exit(5);
        if (!arg_is(argc, argv, "mover")) MUST(setpgid(0, 0));
        if (signal) kill(own, SIGUSR1);
        _exit(5);
    }
    if (arg_is(argc, argv, "mover")) go(mover, NULL);
    result = waitpid(arg_is(argc, argv, "by_number") ? -getpgrp() : 0, NULL, 0) < 0 ? errno : 0;
    if (fixed) assert(result == 0);
    /* The signal wakes it, and then there is none: no EINTR, unless the handler is called before the child leaves. */
    else if (signal) assert(result == ECHILD);
    else if (arg_is(argc, argv, "told")) assert(result != ECHILD);
    return 0;
}
