/* A descriptor is opened and then marked to be closed on exec, while another thread forks and executes a program: that has it, or not. "ioctl",
   "range": the mark is set otherwise. "action": the same with a signal that is ignored. "fixed": it is opened with the mark. */
#define _GNU_SOURCE
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char **args;

/* The program that is executed: whether it has inherited what it should not. */
static int executed(void)
{
    if (strcmp(args[2], "action") == 0)
        return signal(SIGUSR1, SIG_DFL) == SIG_IGN;
    for (int fd = 3; fd < 20; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 1;
    return 0;
}

static void *forks(void *unused)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl(args[0], args[0], "executed", args[2], (char *)NULL);
        _exit(99);
    }
    assert(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert(WEXITSTATUS(status) == (strcmp(args[1], "has") != 0));
    return unused;
}

int main(int argc, char **argv)
{
    args = argv;
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "executed") == 0)
        return executed();
    pthread_t t = go(forks, NULL);
    if (strcmp(argv[2], "action") == 0)
        signal(SIGUSR1, SIG_IGN);
    else {
        int fixed = strcmp(argv[2], "fixed") == 0, file = open("/dev/null", O_RDONLY | (fixed ? O_CLOEXEC : 0));
        assert(file >= 0);
        if (strcmp(argv[2], "ioctl") == 0)
            MUST(ioctl(file, FIOCLEX));
        else if (strcmp(argv[2], "range") == 0)
            MUST(close_range(file, file, CLOSE_RANGE_CLOEXEC));
        else if (!fixed)
            MUST(fcntl(file, F_SETFD, FD_CLOEXEC));
    }
    join(t);
    return 0;
}
