/* Two process-shared semaphores in shared memory, taken A-B by the child and B-A (buggy) or A-B (fixed) by the parent. */
#include "t.h"

static sem_t *s;

static void both(sem_t *first, sem_t *second)
{
    MUST(sem_wait(first));
    MUST(sem_wait(second));
    MUST(sem_post(second));
    MUST(sem_post(first));
}

static void child(void)
{
    both(&s[0], &s[1]);
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed");
    pid_t pid;

    s = shared(2 * sizeof *s);
    MUST(sem_init(&s[0], 1, 1));
    MUST(sem_init(&s[1], 1, 1));
    pid = fork_run(child);
    both(&s[!fixed], &s[fixed]);
    assert(reap(pid) == 0);
    return 0;
}
