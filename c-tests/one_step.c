/*
 * What the kernel does step by step and others can see in between is named where it is one step here: the count of links falls before the
 * name is gone (natively 190 of 6,000), a path is followed name by name (5 of 6,000), a signal for a group comes to one process after the
 * other (5 of 300), a long write shows in part (19 of 80). ORDERED: nobody looks meanwhile.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t other;
static char bytes[10000];

static void end(int signal)
{
    (void)signal;
    kill(other, SIGUSR1);
    _exit(0);
}

static pid_t member(pid_t group, int handles)
{
    int ready[2];
    char byte;

    pipe(ready);
    pid_t child = fork();
    if (child == 0) {
        if (handles)
            signal(SIGTERM, end);
        setpgid(0, group);
        write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    read(ready[0], &byte, 1);
    return child;
}

int main(int argc, char **argv)
{
    int status = 0, how = argc > 1 ? argv[1][0] : 'u';
    struct stat about;

    if (how == 'g') {
        other = member(0, 0);
        pid_t first = member(other, 1);
        kill(-other, SIGTERM);
        waitpid(first, NULL, 0);
        waitpid(other, &status, 0);
        assert(WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGUSR1);
        return 0;
    }
    mkdir("one", 0700);
    int fd = open("one/file", O_CREAT | O_RDWR, 0600);
    symlink("one", "way");
    mkdir("two", 0700);
    close(open("two/file", O_CREAT, 0600));
    pid_t child = fork();
    if (child == 0) {
        if (how == 'u') {
            unlink("one/file");
        } else if (how == 'w') {
            symlink("two", "new");
            rename("new", "way");
            unlink("one/file");
        } else {
            write(fd, bytes, sizeof bytes);
        }
        _exit(0);
    }
#ifdef ORDERED
    waitpid(child, NULL, 0);
#endif
    if (how == 'u') {
        fstat(fd, &about);
        access("one/file", F_OK);
    } else if (how == 'w') {
        close(open("way/file", O_RDONLY));
    } else {
        fstat(fd, &about);
    }
#ifndef ORDERED
    waitpid(child, NULL, 0);
#endif
    return 0;
}
