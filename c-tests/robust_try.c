/* A trylock of a robust mutex whose owner ends at any moment. "free", "busy", "dead": that this answer never comes is taken for granted.
 * Buggy: EBUSY is taken to say that the owner will unlock it, and 0 is expected of the lock then. Fixed: all answers, and the state is
 * mended. "lost": it is not, so that the next finds ENOTRECOVERABLE where he expects 0. "kill-..": the owner is a process that is killed. */
#include <signal.h>

#include "t.h"

static pthread_mutex_t *m;

static void *owner(void *arg)
{
    int rc = pthread_mutex_lock(m);

    assert(rc == 0 || rc == ENOTRECOVERABLE);
    return arg;
}

/* Owns it now, or it is lost. */
static int take(const char *variant)
{
    int rc = pthread_mutex_trylock(m);

    assert(rc == 0 || rc == EBUSY || rc == EOWNERDEAD);
    assert(!(rc == 0 && strcmp(variant, "free") == 0));
    assert(!(rc == EBUSY && strcmp(variant, "busy") == 0));
    assert(!(rc == EOWNERDEAD && strcmp(variant, "dead") == 0));
    if (rc == EBUSY) {
        rc = pthread_mutex_lock(m);
        if (strcmp(variant, "buggy") == 0)
            assert(rc == 0);
    }
    if (rc == EOWNERDEAD && strcmp(variant, "lost") != 0) {
        MUST(pthread_mutex_consistent(m));
        rc = 0;
    }
    return rc;
}

int main(int argc, char **argv)
{
    const char *variant = argc > 1 ? argv[1] : "fixed";
    int killed = strncmp(variant, "kill-", 5) == 0, rc;
    pthread_mutexattr_t attr;
    pthread_t t = 0;
    pid_t child = 0;

    m = shared(sizeof *m);
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(m, &attr));
    if (killed) {
        variant += 5;
        child = fork();
        if (child == 0) {
            owner(NULL);
            pause();
        }
        MUST(kill(child, SIGKILL));
    } else
        t = go(owner, NULL);
    rc = take(variant);
    assert(rc == 0 || rc == EOWNERDEAD);
    MUST(pthread_mutex_unlock(m));
    if (strcmp(variant, "lost") == 0)
        MUST(pthread_mutex_lock(m));
    if (killed)
        assert(WTERMSIG(reap(child)) == SIGKILL);
    else
        join(t);
    return 0;
}
