/* Orphaned groups: one that loses its last outside parent while a member is stopped gets SIGHUP and SIGCONT, and in one SIGTSTP does not stop. */
#include "t.h"
#include <signal.h>

int main(int argc, char **argv)
{
    int status = 0, ends[2], kills = arg_is(argc, argv, "kills");
    char byte;
    pid_t child, member;
    MUST(pipe(ends));
    child = fork();
    if (child == 0 && arg_is(argc, argv, "stop")) {
        setsid();
        raise(SIGTSTP);
        _exit(3);
    }
    if (child == 0) {
        setsid();
        member = fork();
        if (member == 0) {
            MUST(setpgid(0, 0));
            if (!kills) signal(SIGHUP, SIG_IGN);
            close(ends[0]);
            raise(arg_is(argc, argv, "terminal") ? SIGTSTP : SIGSTOP);
            if (write(ends[1], "x", 1) != 1) abort();
            _exit(0);
        }
        assert(waitpid(member, &status, WUNTRACED) == member && WIFSTOPPED(status));
        _exit(0);
    }
    if (arg_is(argc, argv, "stop")) {
        assert(waitpid(child, &status, WUNTRACED) == child);
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        return 0;
    }
    close(ends[1]);
    assert(read(ends[0], &byte, 1) == (kills ? 0 : 1));
    assert(reap(child) == 0);
    return 0;
}
