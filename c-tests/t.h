/* Helpers for the test programs: whatever must not fail aborts, so that it shows as a bug. */
#ifndef T_H
#define T_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The first argument selects the variant: "fixed", "buggy" or another word of the program. */
static inline int arg_is(int argc, char **argv, const char *word)
{
    return argc > 1 && strcmp(argv[1], word) == 0;
}

static inline void must_(long result, const char *what, int line)
{
    if (result != 0) {
        fprintf(stderr, "line %d: %s: unexpected result %ld, errno %d\n", line, what, result, errno);
        abort();
    }
}
/* For calls that return 0 when all is well. */
#define MUST(call) must_((long)(call), #call, __LINE__)

static inline pthread_t go(void *(*body)(void *), void *arg)
{
    pthread_t t;
    MUST(pthread_create(&t, NULL, body, arg));
    return t;
}

static inline void join(pthread_t t)
{
    MUST(pthread_join(t, NULL));
}

static inline void *shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    return p;
}

/* Forks; the child runs body and exits with status 0. */
static inline pid_t fork_run(void (*body)(void))
{
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        body();
        _exit(0);
    }
    return pid;
}

/* Waits for one child and returns its raw wait status. */
static inline int reap(pid_t pid)
{
    int status = -1;
    if (waitpid(pid, &status, 0) != pid)
        abort();
    return status;
}

/* Now + ms, for calls with an absolute time limit. */
static inline struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* System V semaphores: a new set with all its values, and one operation on one of them. */
static inline int new_sems(int n, int value)
{
    int set = semget(IPC_PRIVATE, n, 0600);
    if (set < 0)
        abort();
    for (int i = 0; i < n; i++)
        MUST(semctl(set, i, SETVAL, value));
    return set;
}

static inline void sem_change(int set, int which, int by)
{
    struct sembuf op;
    op.sem_num = (unsigned short)which;
    op.sem_op = (short)by;
    op.sem_flg = 0;
    MUST(semop(set, &op, 1));
}
#endif
