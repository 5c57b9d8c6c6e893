/* A timer whose signal ends the process may do so between any two calls: before the one that takes the timer away, and between calls on files. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

static void set(long us)
{
    MUST(setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { 0, us } }, NULL));
}

int main(int argc, char **argv)
{
    int ends[2], fd = open("timer_fatal", O_CREAT | O_RDWR, 0600), files = arg_is(argc, argv, "files");
    MUST(pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        if (argc > 2)
            MUST(sigprocmask(SIG_BLOCK, &(sigset_t){ { 1ul << (SIGALRM - 1) } }, NULL));
        set(1000);
        MUST(write(files ? fd : ends[1], "x", 1) != 1);
        if (files)
            MUST(write(fd, "x", 1) != 1);
        set(0);
        _exit(0);
    }
    close(ends[1]);
    char c;
    struct stat st;
    int status, there = files ? 0 : read(ends[0], &c, 1);
    MUST(waitpid(child, &status, 0) != child);
    MUST(fstat(fd, &st));
    assert(status == 0 || (files ? st.st_size != 1 : there == 0));
    return 0;
}
