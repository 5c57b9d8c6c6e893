/* One thread forks, another one sets the umask; which comes first the child tells. libc's fork takes the locks of malloc, and pthread_create needs them:
   the thread that sets the umask may be created before the other one has them. */
#include "t.h"
#include <sys/stat.h>

static int fixed;

static void *forks(void *unused)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(umask(0) == 077);
    assert(waitpid(child, &status, 0) == child);
    assert(fixed || WEXITSTATUS(status) == 0);
    return unused;
}

static void *sets(void *unused)
{
    umask(077);
    return unused;
}

int main(int argc, char **argv)
{
    fixed = arg_is(argc, argv, "fixed");
    umask(022);
    pthread_t a = go(forks, NULL), b = go(sets, NULL);
    join(a);
    join(b);
    return 0;
}
