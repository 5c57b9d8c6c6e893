/* A daemon that serves one client at a time, and what its first start leaves for the second when it is killed. By the first argument: `pid`: a
 * file that says that it runs, made with O_EXCL and taken away at the end; `sem`: a System V semaphore that is taken while it works, without SEM_UNDO; `undo`: the
 * same with it; `flock`: a lock of a file, which goes with the process; `fails N`: exits with status N each time, `once`: the first time only. `client`:
 * goes on until somebody answers, or nobody has for a while. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <unistd.h>

static void change(int set, int by, int flags)
{
    struct sembuf one = {0, (short)by, (short)flags};
    if (semop(set, &one, 1) != 0)
        abort();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int file, set;
    if (strcmp(how, "pid") == 0) {
        file = open("daemon.lock", O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (file < 0)
            return 7;
        unlink("daemon.lock");
        return 0;
    }
    if (strcmp(how, "flock") == 0) {
        file = open("daemon.lock", O_CREAT | O_WRONLY, 0600);
        if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0)
            return 7;
        return 0;
    }
    if (strcmp(how, "sem") == 0 || strcmp(how, "undo") == 0) {
        int flags = strcmp(how, "undo") == 0 ? SEM_UNDO : 0;
        set = semget(4711, 1, IPC_CREAT | IPC_EXCL | 0600);
        if (set >= 0)
            change(set, 1, 0);
        else
            set = semget(4711, 1, 0600);
        change(set, -1, flags);
        change(set, 1, flags);
        return 0;
    }
    if (strcmp(how, "fails") == 0)
        return atoi(argv[2]);
    if (strcmp(how, "once") == 0) {
        file = open("failed", O_CREAT | O_EXCL | O_WRONLY, 0600);
        return file < 0 ? 0 : 1;
    }
    if (strcmp(how, "handles") == 0) {
        sigset_t set;
        int got;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        sigwait(&set, &got);
        return 3;
    }
    return 0;
}
