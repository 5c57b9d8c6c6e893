/* A daemon, and what its first start leaves for the second. By the first argument: `pid`: a file that says that it runs, made with O_EXCL and
 * taken away at the end; `flock`: a lock of a file, which goes with the process; `sem`: a System V semaphore that is taken while it works, without
 * SEM_UNDO; `fails N`: exits with status N; `once`: fails the first time only; `second`: fails the second time only; `handles`: exits with status 3 when
 * it gets SIGTERM; `port`: listens at a port, and fails where that is taken; `child`: a child has that port, and is still there when its parent is killed. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

static void change(int set, int by)
{
    struct sembuf one = {0, (short)by, 0};
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
    if (strcmp(how, "sem") == 0) {
        set = semget(4711, 1, IPC_CREAT | IPC_EXCL | 0600);
        if (set < 0)
            set = semget(4711, 1, 0600);
        else
            change(set, 1);
        change(set, -1);
        change(set, 1);
        return 0;
    }
    if (strcmp(how, "fails") == 0)
        return atoi(argv[2]);
    if (strcmp(how, "once") == 0) {
        file = open("failed", O_CREAT | O_EXCL | O_WRONLY, 0600);
        return file < 0 ? 0 : 1;
    }
    if (strcmp(how, "second") == 0) {
        file = open("started", O_CREAT | O_EXCL | O_WRONLY, 0600);
        return file < 0 ? 5 : 0;
    }
    if (strcmp(how, "port") == 0 || strcmp(how, "child") == 0) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4711), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        if (bind(s, (struct sockaddr *)&at, sizeof at) != 0 || listen(s, 1) != 0)
            return 9;
        if (strcmp(how, "child") == 0 && fork() == 0) {
            char c;
            int got = accept(s, NULL, NULL);
            return got < 0 || read(got, &c, 1) < 0;
        }
        return accept(s, NULL, NULL) < 0;
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
