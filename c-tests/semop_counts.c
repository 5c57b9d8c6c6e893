/* GETNCNT and GETZCNT: who waits in a semop of several operations counts where the first of them is that cannot be done. */
#include "t.h"

static int set;

static void child(void)
{
    struct sembuf both[2] = {{0, -1, 0}, {1, 0, 0}};
    MUST(semop(set, both, 2));
}

int main(int argc, char **argv)
{
    int value;
    pid_t pid;
    set = new_sems(2, 0);
    MUST(semctl(set, 1, SETVAL, 1));
    pid = fork_run(child);
    value = semctl(set, 0, GETNCNT);
    assert(semctl(set, 1, GETNCNT) == 0 && semctl(set, 0, GETZCNT) == 0);
    if (value == 1) {
        assert(semctl(set, 1, GETZCNT) == 0);
        sem_change(set, 0, 1);
        /* Now it waits for the other. */
        assert(semctl(set, 0, GETNCNT) == 0 && semctl(set, 1, GETZCNT) == 1);
    } else {
        sem_change(set, 0, 1);
    }
    if (arg_is(argc, argv, "seen")) assert(value == 0);
    sem_change(set, 1, -1);
    assert(reap(pid) == 0);
    return 0;
}
