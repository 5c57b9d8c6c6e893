/* A daemon: double fork, setsid, umask and chdir; the grandchild outlives its parent and answers through shared memory. */
#include "t.h"
#include <sys/stat.h>

static sem_t *answered;
static int *answer;

int main(void)
{
    pid_t pid;

    answered = shared(sizeof *answered);
    answer = shared(sizeof *answer);
    MUST(sem_init(answered, 1, 0));
    pid = fork();
    if (pid == 0) {
        if (setsid() < 0)
            abort();
        pid = fork();
        if (pid != 0)
            _exit(pid < 0);
        umask(027);
        MUST(chdir("/"));
        *answer = getsid(0) != getpid() ? 42 : 0;
        MUST(sem_post(answered));
        _exit(0);
    }
    assert(reap(pid) == 0);
    MUST(sem_wait(answered));
    printf("the daemon answered %d\n", *answer);
    return 0;
}
