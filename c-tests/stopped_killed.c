/* A process that is stopped and then killed ends. */
#include "t.h"
#include <signal.h>

int main(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(3);
    }
    assert(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    MUST(kill(child, SIGKILL));
    assert(waitpid(child, &status, 0) == child);
    assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return 0;
}
