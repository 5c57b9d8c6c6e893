/*
 * Two threads take two locks in crossing order, back off when the second is taken, and try again; a
 * child process waits for their success.  Buggy: nobody ever leaves the loop, so the child waits for
 * ever while the threads are busy.  Fixed: one attempt each, then the child is told.
 */
#include "t.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static sem_t *success;
static int fixed;

static void attempt(pthread_mutex_t *first, pthread_mutex_t *second)
{
    MUST(pthread_mutex_lock(first));
    if (pthread_mutex_trylock(second) == 0)
        MUST(pthread_mutex_unlock(second));
    MUST(pthread_mutex_unlock(first));
}

static void *one(void *unused)
{
    do
        attempt(&a, &b);
    while (!fixed);
    MUST(sem_post(success));
    return unused;
}

static void child(void)
{
    MUST(sem_wait(success));
}

int main(int argc, char **argv)
{
    pthread_t t;
    pid_t pid;

    fixed = arg_is(argc, argv, "fixed");
    success = shared(sizeof *success);
    MUST(sem_init(success, 1, 0));
    pid = fork_run(child);
    t = go(one, NULL);
    do
        attempt(&b, &a);
    while (!fixed);
    join(t);
    assert(reap(pid) == 0);
    return 0;
}
