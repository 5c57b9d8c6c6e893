/* IPC_NOWAIT.  Buggy: does not look at the result, and gives back what it never got.  Fixed: looks. */
#include "t.h"

static int set, fixed;

static void child(void)
{
    sem_change(set, 0, -1);
    sem_change(set, 0, +1);
}

int main(int argc, char **argv)
{
    struct sembuf take = { 0, -1, IPC_NOWAIT };
    pid_t pid;
    int rc;

    fixed = arg_is(argc, argv, "fixed");
    set = new_sems(1, 1);
    pid = fork_run(child);
    rc = semop(set, &take, 1);
    assert(rc == 0 || errno == EAGAIN);
    if (rc == 0 || !fixed)
        sem_change(set, 0, +1);
    assert(reap(pid) == 0);
    assert(semctl(set, 0, GETVAL) == 1);
    MUST(semctl(set, 0, IPC_RMID));
    return 0;
}
