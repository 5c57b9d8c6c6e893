/*
 * A process forks while another of its threads may hold a lock, which the child then has for ever: nobody is there who
 * would release it.  Fixed: the lock is taken around the fork (pthread_atfork), so that the child finds it in order.
 */
#include "t.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int lines;

static void say(void)
{
    MUST(pthread_mutex_lock(&log_lock));
    lines++;
    MUST(pthread_mutex_unlock(&log_lock));
}

static void before(void)
{
    MUST(pthread_mutex_lock(&log_lock));
}

static void after(void)
{
    MUST(pthread_mutex_unlock(&log_lock));
}

static void *worker(void *unused)
{
    (void)unused;
    say();
    return NULL;
}

int main(int argc, char **argv)
{
    int status;

    if (arg_is(argc, argv, "fixed"))
        MUST(pthread_atfork(before, after, after));
    pthread_t t = go(worker, NULL);
    pid_t child = fork();
    if (child == 0) {
        say();
        _exit(0);
    }
    MUST(child < 0);
    MUST(waitpid(child, &status, 0) != child);
    MUST(status);
    join(t);
    return 0;
}
