/* Two processes that each need two System V semaphores.  Buggy: one at a time, in crossing order.  Fixed: both in one semop. */
#include "t.h"

static int set, fixed;

static void both(int first, int second)
{
    struct sembuf op[2] = { { (unsigned short)first, -1, 0 }, { (unsigned short)second, -1, 0 } };

    if (fixed) {
        MUST(semop(set, op, 2));
    } else {
        MUST(semop(set, &op[0], 1));
        MUST(semop(set, &op[1], 1));
    }
    op[0].sem_op = op[1].sem_op = 1;
    MUST(semop(set, op, 2));
}

static void child(void)
{
    both(0, 1);
}

int main(int argc, char **argv)
{
    pid_t pid;

    fixed = arg_is(argc, argv, "fixed");
    set = new_sems(2, 1);
    pid = fork_run(child);
    both(1, 0);
    assert(reap(pid) == 0);
    assert(semctl(set, 0, GETVAL) == 1 && semctl(set, 1, GETVAL) == 1);
    MUST(semctl(set, 0, IPC_RMID));
    return 0;
}
