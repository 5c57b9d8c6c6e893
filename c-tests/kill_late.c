/* kill(2) returns before whom it kills has stopped to run.  Buggy: what the child does is taken to be over then; a lock that it had, to be
 * free or still taken.  Fixed: the child is waited for.  No call that the child makes comes after one that it was in when it was killed. */
#include "t.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

struct shared {
    sem_t done;
    pthread_mutex_t lock;
};

static int value(sem_t *sem)
{
    int n;
    MUST(sem_getvalue(sem, &n));
    return n;
}

static int last_words;

static void says(void)
{
    char byte = 0;
    MUST(write(last_words, &byte, 1) != 1);
}

static void ends(int signal)
{
    (void)signal;
    _exit(5);
}

static int waiting(int fd)
{
    int n;
    MUST(ioctl(fd, FIONREAD, &n));
    return n;
}

int main(int argc, char **argv)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attr;
    int to[2], ready[2], before, status;
    pid_t child;
    char byte = 0;

    MUST(pipe(to));
    MUST(pipe(ready));
    MUST(sem_init(&s->done, 1, 0));
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(&s->lock, &attr));
    child = fork();
    if (child == 0) {
        if (arg_is(argc, argv, "exits")) {
            last_words = to[1];
            MUST(atexit(says));
            MUST(signal(SIGTERM, ends) == SIG_ERR);
            exit(3);
        } else if (arg_is(argc, argv, "robust") || arg_is(argc, argv, "robust-fixed")) {
            MUST(pthread_mutex_lock(&s->lock));
            MUST(write(ready[1], &byte, 1) != 1);
            pause();
        } else if (arg_is(argc, argv, "calls") || arg_is(argc, argv, "call")) {
            for (int i = 0; i < 3; i++)
                MUST(write(to[1], &byte, 1) != 1);
            pause();
        } else {
            MUST(sem_post(&s->done));
            MUST(sem_post(&s->done));
            pause();
        }
        _exit(0);
    }
    if (arg_is(argc, argv, "robust")) {
        MUST(read(ready[0], &byte, 1) != 1);
        MUST(kill(child, SIGKILL));
        assert(pthread_mutex_trylock(&s->lock) == EOWNERDEAD);
    } else if (arg_is(argc, argv, "robust-fixed")) {
        MUST(read(ready[0], &byte, 1) != 1);
        MUST(kill(child, SIGKILL));
        assert(pthread_mutex_lock(&s->lock) == EOWNERDEAD);
        MUST(pthread_mutex_consistent(&s->lock));
        MUST(pthread_mutex_unlock(&s->lock));
    } else if (arg_is(argc, argv, "calls")) {
        MUST(kill(child, SIGKILL));
        before = waiting(to[0]);
        MUST(waitpid(child, &status, 0) != child);
        assert(waiting(to[0]) - before <= 1);
        return 0;
    } else if (arg_is(argc, argv, "exits")) {
        MUST(kill(child, SIGTERM));
        MUST(waitpid(child, &status, 0) != child);
        /* Killed before there was a handler, it is not in any call but that which makes it one. */
        assert(!WIFSIGNALED(status) || waiting(to[0]) == 0);
        return 0;
    } else if (arg_is(argc, argv, "call")) {
        MUST(kill(child, SIGKILL));
        before = waiting(to[0]);
        MUST(waitpid(child, &status, 0) != child);
        assert(waiting(to[0]) == before);
        return 0;
    } else if (arg_is(argc, argv, "buggy")) {
        MUST(kill(child, SIGTERM));
        before = value(&s->done);
        MUST(waitpid(child, &status, 0) != child);
        assert(value(&s->done) == before);
        return 0;
    } else {
        MUST(kill(child, SIGTERM));
        MUST(waitpid(child, &status, 0) != child);
        assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        before = value(&s->done);
        assert(value(&s->done) == before);
        return 0;
    }
    MUST(waitpid(child, &status, 0) != child);
    return 0;
}
