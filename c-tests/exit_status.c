/* A process ends with status 5 if the child comes first. */
#include "t.h"

static int set, *first;

static void child(void)
{
    sem_change(set, 0, -1);
    *first = 1;
    sem_change(set, 0, +1);
}

int main(void)
{
    pid_t pid;
    int bad;

    first = shared(sizeof *first);
    set = new_sems(1, 1);
    pid = fork_run(child);
    sem_change(set, 0, -1);
    bad = *first;
    sem_change(set, 0, +1);
    assert(reap(pid) == 0);
    MUST(semctl(set, 0, IPC_RMID));
    return bad ? 5 : 0;
}
