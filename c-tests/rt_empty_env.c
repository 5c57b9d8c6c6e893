/* Executes itself with an empty environment; the new program uses threads and a child as if nothing had happened. */
#include "t.h"

extern char **environ;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    count++;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    char *again[] = { argv[0], "again", NULL }, *none[] = { NULL };

    if (!arg_is(argc, argv, "again")) {
        execve("/proc/self/exe", again, none);
        perror("execve");
        return 1;
    }
    pthread_t t = go(add, NULL);
    pid_t pid;

    add(NULL);
    join(t);
    pid = fork();
    if (pid == 0)
        _exit(6);
    assert(WEXITSTATUS(reap(pid)) == 6);
    printf("count %d, environment %s\n", count, environ && *environ ? *environ : "empty");
    return 0;
}
