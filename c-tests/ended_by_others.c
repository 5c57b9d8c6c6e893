/*
 * What another one may cut short, or keep from going on.
 *
 * killed: a child writes to memory that it shares, and is killed: it may have come that far or not.
 * cancelled: the same of a thread that heeds requests to end anywhere: what it does between two calls is not cut short here, which is said.
 * semaphore, mutex, cond, rwlock, barrier: one that is not made for several processes is used by two: natively nobody may be woken, which is said; with "shared"
 * it is made for that.
 * once: only one process uses it.
 * interrupted: a signal comes to who waits for data that has come: natively the read may fail, which is said.
 * forker: the thread ends that has forked a process which asked for a signal then, which is said.
 */
#define _GNU_SOURCE
#include "t.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    sem_t sem;
    int value;
} *all;
static int pshared;
static atomic_int value;
static sem_t ready;

static void killed(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        all->value = 1;
        _exit(0);
    }
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, &status, 0) != child);
    printf("%d %d\n", all->value, WIFSIGNALED(status));
}

static void *writer(void *unused)
{
    MUST(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    MUST(sem_post(&ready));
    value = 1;
    value = 2;
    return unused;
}

static void make(void)
{
    pthread_mutexattr_t m;
    pthread_condattr_t c;
    pthread_rwlockattr_t r;
    pthread_barrierattr_t b;
    MUST(pthread_mutexattr_init(&m));
    MUST(pthread_condattr_init(&c));
    MUST(pthread_rwlockattr_init(&r));
    MUST(pthread_barrierattr_init(&b));
    if (pshared) {
        MUST(pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED));
        MUST(pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED));
        MUST(pthread_rwlockattr_setpshared(&r, PTHREAD_PROCESS_SHARED));
        MUST(pthread_barrierattr_setpshared(&b, PTHREAD_PROCESS_SHARED));
    }
    MUST(pthread_mutex_init(&all->mutex, &m));
    MUST(pthread_cond_init(&all->cond, &c));
    MUST(pthread_rwlock_init(&all->rwlock, &r));
    MUST(pthread_barrier_init(&all->barrier, &b, 2));
    MUST(sem_init(&all->sem, pshared, 0));
}

static void use(const char *what, int child)
{
    if (strcmp(what, "semaphore") == 0) {
        MUST(child ? sem_wait(&all->sem) : sem_post(&all->sem));
    } else if (strcmp(what, "mutex") == 0) {
        MUST(pthread_mutex_lock(&all->mutex));
        MUST(pthread_mutex_unlock(&all->mutex));
    } else if (strcmp(what, "cond") == 0) {
        MUST(pthread_mutex_lock(&all->mutex));
        if (child)
            all->value = 1;
        else
            while (all->value == 0)
                MUST(pthread_cond_wait(&all->cond, &all->mutex));
        MUST(pthread_cond_signal(&all->cond));
        MUST(pthread_mutex_unlock(&all->mutex));
    } else if (strcmp(what, "rwlock") == 0) {
        MUST(pthread_rwlock_wrlock(&all->rwlock));
        MUST(pthread_rwlock_unlock(&all->rwlock));
    } else if (strcmp(what, "barrier") == 0) {
        pthread_barrier_wait(&all->barrier);
    } else if (!child) {
        MUST(pthread_mutex_lock(&all->mutex));
        MUST(pthread_mutex_unlock(&all->mutex));
    }
}

static void nothing(int signal)
{
    (void)signal;
}

static void interrupted(void)
{
    struct sigaction action = {.sa_handler = nothing};
    int pair[2];
    char byte;
    MUST(sigaction(SIGCHLD, &action, NULL));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = fork();
    if (child == 0) {
        MUST(write(pair[1], "a", 1) != 1);
        _exit(0);
    }
    int got = read(pair[0], &byte, 1);
    assert(got == 1 || errno == EINTR);
    while (waitpid(child, NULL, 0) < 0)
        ;
}

static void *forks(void *unused)
{
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sem_wait(&all->sem);
        _exit(0);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;
    pshared = argc > 2;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arg_is(argc, argv, "killed")) {
        killed();
    } else if (arg_is(argc, argv, "cancelled")) {
        MUST(sem_init(&ready, 0, 0));
        t = go(writer, NULL);
        MUST(sem_wait(&ready));
        MUST(pthread_cancel(t));
        MUST(pthread_join(t, NULL));
        printf("%d\n", value);
    } else if (arg_is(argc, argv, "interrupted")) {
        interrupted();
    } else if (arg_is(argc, argv, "forker")) {
        MUST(sem_init(&all->sem, 1, 0));
        t = go(forks, NULL);
        join(t);
        MUST(sem_post(&all->sem));
        wait(NULL);
    } else {
        make();
        pid_t child = fork();
        use(argv[1], child == 0);
        if (child == 0)
            _exit(0);
        MUST(waitpid(child, NULL, 0) != child);
    }
    return 0;
}
