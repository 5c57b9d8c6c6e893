/* VS_toss: two processes toss; the sum 2 + 1 of one draw and the other is not allowed (buggy) or is (fixed). */
#include "t.h"
#include "../shim/include/vs.h"

static int *drawn;

static void child(void)
{
    drawn[0] = VS_toss(2);
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed");
    pid_t pid;

    drawn = shared(2 * sizeof *drawn);
    pid = fork_run(child);
    drawn[1] = VS_toss(1);
    assert(reap(pid) == 0);
    VS_assert(drawn[0] >= 0 && drawn[0] <= 2 && drawn[1] >= 0 && drawn[1] <= 1);
    VS_assert(fixed || drawn[0] + drawn[1] < 3);
    return 0;
}
