/*
 * What a parent does about SIGCHLD changes while its children end.  child_news VARIANT
 *   left      SIGCHLD was ignored: a child that ends before it is handled leaves nothing to wait for
 *   blocked   it is blocked after the fork: the child may have ended before, and sigpending does not tell of it
 *   last      it is ignored all the time: wait fails when the last child has ended, not sooner
 *   early     it is blocked before the fork
 *   unblocked it is let through again while a child goes on that looks at its own signals
 */
#include "t.h"
#include <errno.h>
#include <sys/wait.h>

static void handler(int sig) { (void)sig; }

static pid_t child(void)
{
    pid_t pid = fork();
    assert(pid >= 0);
    if (pid == 0) _exit(0);
    return pid;
}

static void block(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[1], "left") == 0) {
        signal(SIGCHLD, SIG_IGN);
        pid_t pid = child();
        signal(SIGCHLD, handler);
        pid_t got;
        do got = waitpid(pid, NULL, 0); while (got < 0 && errno == EINTR);
        assert(got == pid);
    } else if (strcmp(argv[1], "last") == 0) {
        signal(SIGCHLD, SIG_IGN);
        pid_t one = child(), two = child();
        assert(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
        assert(kill(one, 0) == -1 && kill(two, 0) == -1);
    } else if (strcmp(argv[1], "unblocked") == 0) {
        sigset_t set;
        block();
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0) {
            sigpending(&set);
            signal(SIGCHLD, handler);
            sigpending(&set);
            _exit(0);
        }
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        sigpending(&set);
        assert(!sigismember(&set, SIGCHLD) && waitpid(pid, NULL, 0) == pid);
    } else {
        if (strcmp(argv[1], "early") == 0) block();
        pid_t pid = child();
        block();
        assert(waitpid(pid, NULL, 0) == pid);
        sigset_t set;
        sigpending(&set);
        assert(sigismember(&set, SIGCHLD));
    }
    return 0;
}
