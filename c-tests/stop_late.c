/* A process that another one stops may go on for a while: whether it has still posted is told by the one that stopped it. */
#include <signal.h>

#include "t.h"

static sem_t *sem;

static void child(void)
{
    MUST(sem_post(sem));
}

int main(void)
{
    sem = shared(sizeof *sem);
    MUST(sem_init(sem, 1, 0));
    pid_t pid = fork_run(child);
    MUST(kill(pid, SIGSTOP));
    int posted = sem_trywait(sem) == 0;
    MUST(kill(pid, SIGCONT));
    if (reap(pid) != 0)
        abort();
    if (!posted)
        MUST(sem_wait(sem));
    return 0;
}
