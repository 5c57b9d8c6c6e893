/* The parent waits for a child that waits for a semaphore which the parent posts after (buggy) or before (fixed) that. */
#include "t.h"

static sem_t *s;

static void child(void)
{
    MUST(sem_wait(s));
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed");
    pid_t pid;

    s = shared(sizeof *s);
    MUST(sem_init(s, 1, 0));
    pid = fork_run(child);
    if (fixed)
        MUST(sem_post(s));
    assert(reap(pid) == 0);
    if (!fixed)
        MUST(sem_post(s));
    return 0;
}
