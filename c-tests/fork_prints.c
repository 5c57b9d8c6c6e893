/* A fork copies what another thread has printed and not written out yet: whether it is there twice depends on who came first, if the child writes out what it
   has. */
#include "t.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *prints(void *arg)
{
    fputs("a line\n", arg);
    return arg;
}

int main(int argc, char **argv)
{
    MUST(argc != 2);
    if (!strcmp(argv[1], "unbuffered"))
        setvbuf(stdout, NULL, _IONBF, 0);
    pthread_t t = go(prints, stdout);
    if (!strcmp(argv[1], "fixed"))
        join(t);
    pid_t child = fork();
    MUST(child < 0);
    if (child == 0) {
        if (!strcmp(argv[1], "flushes"))
            fflush(stdout);
        if (!strcmp(argv[1], "writes"))
            MUST(write(1, "child\n", 6) != 6);
        if (!strcmp(argv[1], "exits"))
            exit(0);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0) != child);
    if (strcmp(argv[1], "fixed"))
        join(t);
    return 0;
}
