/* Two threads end their process, or one replaces its program: the first one decides. A supervisor starts a child again that has failed. */
#include "t.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *what;

static void *ends(void *arg)
{
    if (!strcmp(what, "exec"))
        execl("/bin/true", "true", (char *)0);
    if (!strcmp(what, "quick"))
        quick_exit(9);
    _exit(9);
    return arg;
}

static int child(void)
{
    pid_t one = fork();
    int status;
    MUST(one < 0);
    if (one == 0) {
        pthread_t t = go(ends, NULL);
        if (!strcmp(what, "fixed"))
            join(t);
        if (!strcmp(what, "exit"))
            exit(4);
        _exit(4);
    }
    MUST(waitpid(one, &status, 0) != one || !WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    int starts = 0, status;
    MUST(argc != 2);
    what = argv[1];
    do
        status = child();
    while (++starts < 2 && !strcmp(what, "again") && status == 9);
    printf("%d %d\n", starts, status);
    return 0;
}
