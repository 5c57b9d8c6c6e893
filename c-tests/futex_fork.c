/* A futex in memory that two processes share.  Buggy: the private flag, by which the wake-up does not reach the other process. */
#include "t.h"
#include "futex.h"

static volatile int *event;
static int flag;

static void child(void)
{
    while (*event == 0)
        if (syscall(SYS_futex, event, FUTEX_WAIT | flag, 0, NULL, NULL, 0) != 0)
            assert(errno == EAGAIN);
}

int main(int argc, char **argv)
{
    pid_t pid;

    flag = arg_is(argc, argv, "fixed") ? 0 : FUTEX_PRIVATE_FLAG;
    event = shared(sizeof *event);
    pid = fork_run(child);
    sched_yield();
    *event = 1;
    syscall(SYS_futex, event, FUTEX_WAKE | flag, 1, NULL, NULL, 0);
    assert(reap(pid) == 0);
    return 0;
}
