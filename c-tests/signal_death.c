/*
 * Death by signal.  segv: raise(SIGSEGV) if it comes second.  kill: the first process sends itself
 * SIGKILL.  child: a child is terminated by its parent, which expects that and says so.
 */
#include "t.h"
#include <signal.h>

static sem_t *s;

static void child(void)
{
    MUST(sem_wait(s));
}

static void *raises(void *unused)
{
    if (sem_trywait(s) != 0)
        raise(SIGSEGV);
    return unused;
}

int main(int argc, char **argv)
{
    s = shared(sizeof *s);
    if (arg_is(argc, argv, "segv")) {
        pthread_t t;

        MUST(sem_init(s, 0, 1));
        t = go(raises, NULL);
        MUST(sem_wait(s));
        MUST(sem_post(s));
        join(t);
    } else if (arg_is(argc, argv, "kill")) {
        MUST(kill(getpid(), SIGKILL));
    } else {
        pid_t pid;
        int status;

        MUST(sem_init(s, 1, 0));
        pid = fork_run(child);
        MUST(kill(pid, SIGTERM));
        status = reap(pid);
        assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        puts("the child was terminated");
    }
    return 0;
}
