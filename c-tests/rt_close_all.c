/* Closes all descriptors but the first three, one by one and by close_range, then forks, starts a thread and works on. */
#include "t.h"
#include <fcntl.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(void)
{
    pid_t pid;
    int fd;

    for (int i = 3; i < 1024; i++)
        close(i);
    MUST(close_range(3, ~0U, 0));
    fd = open("/dev/null", O_RDONLY);
    assert(fd == 3); /* the lowest free one */
    MUST(close(fd));
    closefrom(3);

    pid = fork();
    if (pid == 0) {
        MUST(close_range(3, ~0U, 0));
        join(go(work, NULL));
        _exit(4);
    }
    join(go(work, NULL));
    assert(WEXITSTATUS(reap(pid)) == 4);
    puts("all closed");
    return 0;
}
