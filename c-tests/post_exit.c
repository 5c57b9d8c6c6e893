/* A child posts a semaphore as the last thing it does. Buggy: who has taken that expects its end to be there already. "early": that
 * it is not there yet. Fixed: waits for it. */
#include "t.h"

static sem_t *done;

static void works(void)
{
    MUST(sem_post(done));
}

int main(int argc, char **argv)
{
    pid_t child, ended;

    done = shared(sizeof *done);
    MUST(sem_init(done, 1, 0));
    child = fork_run(works);
    MUST(sem_wait(done));
    ended = waitpid(child, NULL, WNOHANG);
    assert(ended == 0 || ended == child);
    if (arg_is(argc, argv, "buggy"))
        assert(ended == child);
    if (arg_is(argc, argv, "early"))
        assert(ended == 0);
    if (ended == 0)
        assert(reap(child) == 0);
    return 0;
}
