/* Which of several children a wait finds first: its thread's own ones, then those of others; those of a thread that has ended belong to another one. */
#include "t.h"

static pid_t theirs;

static void nothing(void)
{
}

static void *forks(void *unused)
{
    (void)unused;
    theirs = fork_run(nothing);
    return NULL;
}

int main(int argc, char **argv)
{
    siginfo_t info;
    pid_t own, first;
    pthread_t t = go(forks, NULL);
    join(t);
    own = fork_run(nothing);
    MUST(waitid(P_PID, own, &info, WEXITED | WNOWAIT));
    MUST(waitid(P_PID, theirs, &info, WEXITED | WNOWAIT));
    if (arg_is(argc, argv, "each")) {
        reap(theirs);
        reap(own);
        return 0;
    }
    first = wait(NULL);
    /* The kernel hands its children on after it has told that the thread is over. */
    assert(first == theirs);
    wait(NULL);
    return 0;
}
