/* semtimedop runs into its timeout in one order.  Buggy: thought impossible.  Fixed: handled. */
#include "t.h"

static int set, fixed;

static void child(void)
{
    sem_change(set, 0, -1);
    sem_change(set, 1, -1); /* until the parent has got or given up semaphore 0 */
    sem_change(set, 0, +1);
}

int main(int argc, char **argv)
{
    struct sembuf take = { 0, -1, 0 };
    struct timespec limit = { 0, 20000000 };
    pid_t pid;
    int rc;

    fixed = arg_is(argc, argv, "fixed");
    set = new_sems(2, 1);
    MUST(semctl(set, 1, SETVAL, 0));
    pid = fork_run(child);
    rc = semtimedop(set, &take, 1, &limit);
    assert(rc == 0 || errno == EAGAIN);
    assert(rc == 0 || fixed);
    sem_change(set, 1, +1);
    if (rc == 0)
        sem_change(set, 0, +1);
    assert(reap(pid) == 0);
    MUST(semctl(set, 0, IPC_RMID));
    return 0;
}
