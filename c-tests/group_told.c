/* A signal for a group: who has it may have ended before, and whether it has a handler yet is a question of who came first. */
#include "t.h"
#include <signal.h>

static void handler(int signal)
{
    (void)signal;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = handler};
    int status, fixed = arg_is(argc, argv, "fixed");
    pid_t child;
    if (fixed) MUST(sigaction(SIGUSR1, &act, NULL));
    child = fork();
    if (child == 0) _exit(3);
    MUST(sigaction(SIGUSR1, &act, NULL));
    MUST(arg_is(argc, argv, "all") ? kill(-getpgrp(), SIGUSR1) : kill(0, SIGUSR1));
    while (wait(&status) < 0) {}
    assert(WIFEXITED(status));
    return 0;
}
