/*
 * What becomes of a SIGCHLD about which nothing is done (its default action).  sigwait_chld VARIANT
 *   waits     it is blocked and waited for: sigwait takes it
 *   suspends  it is blocked, pending, and let through by sigsuspend: it is dropped there, and nothing wakes the caller
 *   handled   the same with a handler
 */
#include "t.h"
#include <signal.h>

static void handler(int sig) { (void)sig; }

int main(int argc, char **argv)
{
    (void)argc;
    int sig, waits = strcmp(argv[1], "waits") == 0;
    sigset_t set, old;
    if (strcmp(argv[1], "handled") == 0) signal(SIGCHLD, handler);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    MUST(sigprocmask(SIG_BLOCK, &set, &old));
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (waits) {
        MUST(sigwait(&set, &sig));
        assert(sig == SIGCHLD && waitpid(child, NULL, WNOHANG) == child);
        return 0;
    }
    assert(waitpid(child, NULL, 0) == child);
    sigpending(&set);
    assert(sigismember(&set, SIGCHLD));
    sigsuspend(&old);
    return 0;
}
