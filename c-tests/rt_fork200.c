/* 200 children, each with a status of its own, all waited for. */
#include "t.h"

int main(void)
{
    long sum = 0;
    int status;

    for (int i = 0; i < 200; i++) {
        pid_t pid = fork();

        if (pid < 0)
            abort();
        if (pid == 0)
            _exit(i % 100);
    }
    for (int i = 0; i < 200; i++) {
        if (wait(&status) < 0 || !WIFEXITED(status))
            abort();
        sum += WEXITSTATUS(status);
    }
    assert(wait(&status) == -1 && errno == ECHILD);
    printf("200 children, sum of status %ld\n", sum);
    return 0;
}
