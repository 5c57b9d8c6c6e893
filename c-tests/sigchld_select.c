/* A flag that a SIGCHLD handler sets, tested before select. Buggy: the child may end between the test and the select, which nothing
 * ends then. Fixed: the signal comes within pselect only. "pipe": the handler writes to a pipe that select looks at. */
#include <fcntl.h>
#include <signal.h>
#include <sys/select.h>

#include "t.h"

static volatile sig_atomic_t died;
static int told[2];

static void handler(int signal)
{
    int saved = errno;

    (void)signal;
    died = 1;
    if (write(told[1], "x", 1) != 1)
        abort();
    errno = saved;
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
    int by_mask = arg_is(argc, argv, "fixed"), by_pipe = arg_is(argc, argv, "pipe"), input[2], looked_at;
    struct sigaction action = {.sa_handler = handler};
    sigset_t child, before;
    fd_set set;

    /* Nothing comes from the input. */
    MUST(pipe(input));
    MUST(pipe(told));
    looked_at = by_pipe ? told[0] : input[0];
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);
    if (by_mask)
        MUST(sigprocmask(SIG_BLOCK, &child, &before));
    fork_run(nothing);
    while (!died) {
        FD_ZERO(&set);
        FD_SET(looked_at, &set);
        int rc = by_mask ? pselect(looked_at + 1, &set, NULL, NULL, NULL, &before)
                         : select(looked_at + 1, &set, NULL, NULL, NULL);
        assert(rc == (by_pipe ? 1 : -1) || (rc == -1 && errno == EINTR));
    }
    assert(wait(NULL) > 0);
    return 0;
}
