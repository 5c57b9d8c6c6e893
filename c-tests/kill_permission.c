/* Whether a process may send another one a signal depends on user ids, which either may change meanwhile. */
#include "t.h"
#include <signal.h>

int main(int argc, char **argv)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        if (!arg_is(argc, argv, "as-it-is") && setuid(65534)) errno = 0;
        kill(parent, 0);
        _exit(0);
    }
    reap(pid);
    return 0;
}
