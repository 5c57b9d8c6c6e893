/* Who is sent a fatal signal that dumps no core ends by it, also where it goes on and calls _exit before that takes effect; whose end has begun
 * before ends as it began. A fatal signal that comes while a process is stopped waits until it goes on. */
#include "t.h"
#include <signal.h>

static sem_t *told;

static void *thread(void *arg)
{
    (void)arg;
    _exit(4);
}

int main(int argc, char **argv)
{
    int status, core = arg_is(argc, argv, "core"), stopped = arg_is(argc, argv, "stopped");
    pid_t child;
    told = shared(sizeof *told);
    MUST(sem_init(told, 1, 0));
    child = fork();
    if (child == 0) {
        if (arg_is(argc, argv, "itself")) {
            go(thread, NULL);
            raise(SIGTERM);
        }
        if (stopped) raise(SIGSTOP);
        if (!arg_is(argc, argv, "before")) sem_wait(told);
        _exit(3);
    }
    if (stopped) {
        assert(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        MUST(kill(child, SIGTERM));
        assert(waitpid(child, &status, WNOHANG) == 0);
        MUST(sem_post(told));
        MUST(kill(child, SIGCONT));
    } else if (!arg_is(argc, argv, "itself")) {
        MUST(kill(child, core ? SIGQUIT : SIGTERM));
        MUST(sem_post(told));
    }
    status = reap(child);
    if (core) assert(!WIFEXITED(status));
    else assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    return 0;
}
