/* Two children that end, told by signalfd: their signals may become one. Buggy: one wait for each that is read. "merged": expects
 * that they become one. Fixed: waits until there is none to wait for. */
#include <signal.h>
#include <sys/signalfd.h>

#include "t.h"

static void nothing(void)
{
}

int main(int argc, char **argv)
{
    int buggy = arg_is(argc, argv, "buggy"), left = 2, reads = 0, fd;
    struct signalfd_siginfo info;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    MUST(sigprocmask(SIG_BLOCK, &set, NULL));
    fd = signalfd(-1, &set, 0);
    assert(fd >= 0);
    for (int i = 0; i < left; i++)
        fork_run(nothing);
    while (left > 0) {
        assert(read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGCHLD);
        reads++;
        if (buggy) {
            assert(wait(NULL) > 0);
            left--;
        } else {
            while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0)
                left--;
        }
    }
    if (arg_is(argc, argv, "merged"))
        assert(reads == 1);
    return 0;
}
