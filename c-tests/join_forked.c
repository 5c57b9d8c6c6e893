/* The first thread of a forked process ends by pthread_exit, and another one joins it. */
#include "t.h"

static pthread_t first;

static void *joins(void *unused)
{
    join(first);
    _exit(7);
    return unused;
}

int main(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        first = pthread_self();
        go(joins, NULL);
        pthread_exit(NULL);
    }
    assert(waitpid(child, &status, 0) == child);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return 0;
}
