/* wait() for whichever child ends first.  Buggy: expects the order of creation.  Fixed: any order, then WNOHANG and ECHILD. */
#include "t.h"

static int set;

static void child(void)
{
    sem_change(set, 0, -1);
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed"), status;
    pid_t first, second, got, other;

    set = new_sems(1, 2);
    first = fork_run(child);
    second = fork_run(child);
    got = wait(&status);
    assert(got == first || (fixed && got == second));
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    other = waitpid(-1, &status, 0);
    assert(other == (got == first ? second : first));
    assert(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD);
    MUST(semctl(set, 0, IPC_RMID));
    return 0;
}
