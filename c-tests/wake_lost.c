/* Two wait for a semaphore or lock, it is posted or unlocked once, and one of the two does not go on: it is killed, its handler ends it or
   jumps away, or it is cancelled. Natively that one may have had the wake-up, and the other one sleeps on though there is something to take.
   "alone": nobody else waits. "robust": the kernel wakes the next one. "back": the handler returns. */
#include "t.h"
#include <setjmp.h>
#include <signal.h>

static struct locks {
    sem_t sem;
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
} *locks;
static const char *what;
static sigjmp_buf away;

static int is(const char *word)
{
    return strcmp(what, word) == 0;
}

static void handler(int sig)
{
    if (is("jump"))
        siglongjmp(away, sig);
    if (!is("back"))
        _exit(0);
}

static void take(void)
{
    if (is("mutex") || is("robust")) {
        if (pthread_mutex_lock(&locks->mutex) == EOWNERDEAD)
            pthread_mutex_consistent(&locks->mutex);
    } else if (is("rwlock")) {
        pthread_rwlock_wrlock(&locks->rwlock);
    } else {
        MUST(sem_wait(&locks->sem));
    }
}

static void give(void)
{
    if (is("mutex") || is("robust"))
        MUST(pthread_mutex_unlock(&locks->mutex));
    else if (is("rwlock"))
        MUST(pthread_rwlock_unlock(&locks->rwlock));
    else
        MUST(sem_post(&locks->sem));
}

static void waits(void)
{
    if (is("handler") || is("jump") || is("back"))
        MUST(sigaction(SIGTERM, &(struct sigaction){ .sa_handler = handler, .sa_flags = SA_RESTART }, NULL));
    if (sigsetjmp(away, 1) == 0) {
        take();
        give();
    }
    _exit(0);
}

static void *body(void *unused)
{
    take();
    give();
    return unused;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "";
    locks = shared(sizeof *locks);
    MUST(sem_init(&locks->sem, 1, 0));
    pthread_mutexattr_t attr;
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    if (is("robust"))
        MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(&locks->mutex, &attr));
    pthread_rwlockattr_t rwattr;
    MUST(pthread_rwlockattr_init(&rwattr));
    MUST(pthread_rwlockattr_setpshared(&rwattr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_rwlock_init(&locks->rwlock, &rwattr));
    if (is("cancel")) {
        pthread_t first = go(body, NULL), second = go(body, NULL);
        give();
        MUST(pthread_cancel(first));
        join(first);
        join(second);
        return 0;
    }
    if (is("mutex") || is("robust") || is("rwlock"))
        take();
    pid_t first = fork(), second = -1;
    if (first == 0)
        waits();
    if (!is("alone") && (second = fork()) == 0)
        waits();
    give();
    MUST(kill(first, is("handler") || is("jump") || is("back") ? SIGTERM : SIGKILL));
    MUST(waitpid(first, NULL, 0) != first);
    if (is("alone")) {
        sem_trywait(&locks->sem);
        return 0;
    }
    /* The first one may have taken it with it. */
    if ((is("mutex") && pthread_mutex_trylock(&locks->mutex) != 0) ||
        (is("rwlock") && pthread_rwlock_trywrlock(&locks->rwlock) != 0))
        MUST(kill(second, SIGKILL));
    else if (is("mutex") || is("rwlock"))
        give();
    int value = 1;
    if (!is("mutex") && !is("rwlock") && !is("robust"))
        MUST(sem_getvalue(&locks->sem, &value));
    if (value == 0)
        MUST(sem_post(&locks->sem));
    MUST(waitpid(second, NULL, 0) != second);
    return 0;
}
