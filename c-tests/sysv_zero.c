/* Waiting for zero: the parent waits until both children have counted down.  Buggy: the semaphore starts at 3. */
#include "t.h"

static int set;

static void child(void)
{
    sem_change(set, 0, -1);
}

int main(int argc, char **argv)
{
    pid_t a, b;

    set = new_sems(1, arg_is(argc, argv, "fixed") ? 2 : 3);
    a = fork_run(child);
    b = fork_run(child);
    sem_change(set, 0, 0);
    assert(reap(a) == 0 && reap(b) == 0);
    MUST(semctl(set, 0, IPC_RMID));
    return 0;
}
