/* A child ends while it holds a System V semaphore; without SEM_UNDO (buggy) it is lost, with it (fixed) given back. */
#include "t.h"

static int set, fixed;

static void child(void)
{
    struct sembuf take = { 0, -1, 0 };

    if (fixed)
        take.sem_flg = SEM_UNDO;
    MUST(semop(set, &take, 1));
}

int main(int argc, char **argv)
{
    pid_t pid;

    fixed = arg_is(argc, argv, "fixed");
    set = new_sems(1, 1);
    pid = fork_run(child);
    sem_change(set, 0, -1);
    sem_change(set, 0, +1);
    assert(reap(pid) == 0);
    assert(!fixed || semctl(set, 0, GETVAL) == 1);
    MUST(semctl(set, 0, IPC_RMID));
    return 0;
}
