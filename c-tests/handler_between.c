/* A handler runs between two writes of its own thread to a file that nobody else uses: by a timer's signal, by another process's. "fixed": the
   signal is blocked meanwhile. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

static int file;

static void handler(int sig)
{
    struct stat stat;
    (void)sig;
    MUST(fstat(file, &stat));
    assert(stat.st_size != 1);
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/handler_betweenXXXXXX";
    int fixed = argc > 2;
    sigset_t both;

    signal(SIGALRM, handler);
    signal(SIGUSR1, handler);
    sigemptyset(&both);
    sigaddset(&both, SIGALRM);
    sigaddset(&both, SIGUSR1);
    file = mkstemp(name);
    assert(file >= 0);
    unlink(name);
    fcntl(file, F_SETFD, FD_CLOEXEC);
    if (argc > 1 && strcmp(argv[1], "kill") == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            close(file);
            MUST(kill(parent, SIGUSR1));
            _exit(0);
        }
    } else {
        struct itimerval value = { .it_value = { 0, 1000 } };
        MUST(setitimer(ITIMER_REAL, &value, NULL));
    }
    if (fixed)
        sigprocmask(SIG_BLOCK, &both, NULL);
    assert(write(file, "a", 1) == 1);
    assert(write(file, "b", 1) == 1);
    if (fixed)
        sigprocmask(SIG_UNBLOCK, &both, NULL);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    return 0;
}
