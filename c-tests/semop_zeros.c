/* A semop that waits for several zeros counts (GETZCNT) where it was looked at last: when some semaphore of the set became 0, not when one grew. */
#include "t.h"

static int set;

static void child(void)
{
    struct sembuf both[2] = {{0, 0, 0}, {1, 0, 0}};
    MUST(semop(set, both, 2));
}

int main(int argc, char **argv)
{
    int first, later, again;
    pid_t pid;
    set = new_sems(3, 0);
    MUST(semctl(set, 0, SETVAL, 1));
    MUST(semctl(set, 1, SETVAL, 1));
    MUST(semctl(set, 2, SETVAL, 1));
    pid = fork_run(child);
    sem_change(set, 0, -1);
    first = semctl(set, 1, GETZCNT);
    sem_change(set, 0, 1);
    later = semctl(set, 0, GETZCNT);
    /* Whoever came before the first look waits for the second semaphore still. */
    if (first == 1) assert(later == 0 && semctl(set, 1, GETZCNT) == 1);
    sem_change(set, 2, -1);
    again = semctl(set, 0, GETZCNT);
    if (first == 1) assert(again == 1 && semctl(set, 1, GETZCNT) == 0);
    if (arg_is(argc, argv, "seen")) assert(first == 0);
    MUST(semctl(set, 0, SETVAL, 0));
    MUST(semctl(set, 1, SETVAL, 0));
    assert(reap(pid) == 0);
    return 0;
}
