/* What another thread prints while one is in exit is written with the rest, or later, or never. */
#include "t.h"

static void *prints(void *unused)
{
    (void)unused;
    printf("b");
    return NULL;
}

int main(int argc, char **argv)
{
    char text[10] = {0};
    int out[2], k, n = 0;
    pid_t pid;
    MUST(pipe(out));
    pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        setvbuf(stdout, NULL, _IOFBF, 100);
        go(prints, NULL);
        printf("a");
        exit(0);
    }
    close(out[1]);
    while ((k = read(out[0], text + n, 5)) > 0)
        n += k;
    reap(pid);
    assert(!strcmp(text, "a") || !strcmp(text, "ab") || !strcmp(text, "ba"));
    if (arg_is(argc, argv, "never")) assert(strcmp(text, "a"));
    if (arg_is(argc, argv, "after")) assert(strcmp(text, "ab"));
    if (arg_is(argc, argv, "before")) assert(strcmp(text, "ba"));
    return 0;
}
