/*
 * What one visible operation costs.  operation KIND N
 *   stay     N pairs of lock and unlock in one thread, while a second thread waits
 *   own      N pairs of lock and unlock of a mutex that only one thread ever uses, while a second thread waits
 *   yield    two threads; N yields altogether, each passes the turn to the other thread
 *   switch   two threads; N hand-offs through two semaphores, each is one post and one wait
 *   process  the same between two processes, with semaphores in shared memory
 *   clock    N calls of clock_gettime
 *   trap     N system calls by an instruction of the program's own
 *   read     N times 4096 bytes of a file
 *   write    N times 4096 bytes to a file
 *   pipe     N round trips of a byte between two processes, through two pipes
 *   apart    the same, each process on a CPU of its own
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long rounds;
static sem_t *turn; /* two: whose turn it is */

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static void alternate(int self)
{
    for (long i = 0; i < rounds / 2; i++) {
        wait_for(&turn[self]);
        sem_post(&turn[1 - self]);
    }
}

static void *alternate_thread(void *unused)
{
    (void)unused;
    alternate(1);
    return NULL;
}

static void *yield_thread(void *unused)
{
    (void)unused;
    for (long i = 0; i < rounds / 2; i++)
        sched_yield();
    return NULL;
}

static void *wait_thread(void *unused)
{
    (void)unused;
    wait_for(&turn[1]);
    return NULL;
}

static pthread_t start(void *(*body)(void *))
{
    pthread_t t;

    if (pthread_create(&t, NULL, body, NULL) != 0)
        abort();
    return t;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *lock_thread(void *unused)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return wait_thread(unused);
}

static void stay(int both_use_it)
{
    pthread_t t = start(both_use_it ? lock_thread : wait_thread);

    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    sem_post(&turn[1]);
    pthread_join(t, NULL);
}

static void yield(void)
{
    pthread_t t = start(yield_thread);

    yield_thread(NULL);
    pthread_join(t, NULL);
}

static void switch_threads(void)
{
    pthread_t t = start(alternate_thread);

    alternate(0);
    pthread_join(t, NULL);
}

static void switch_processes(void)
{
    pid_t child = fork();

    if (child < 0)
        abort();
    if (child == 0) {
        alternate(1);
        _exit(0);
    }
    alternate(0);
    waitpid(child, NULL, 0);
}

static void clocks(void)
{
    struct timespec now;

    for (long i = 0; i < rounds; i++)
        clock_gettime(CLOCK_REALTIME, &now);
}

static void traps(void)
{
    for (long i = 0; i < rounds; i++) {
        long result = SYS_getppid;

        __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    }
}

static void file(int writes)
{
    static char page[4096];
    int fd = open("operation.file", O_RDWR | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || pwrite(fd, page, sizeof page, 0) != sizeof page)
        abort();
    for (long i = 0; i < rounds; i++)
        if ((writes ? pwrite(fd, page, sizeof page, 0) : pread(fd, page, sizeof page, 0)) != sizeof page)
            abort();
    unlink("operation.file");
}

static void pass(int in, int out, int first)
{
    char byte = 'x';

    for (long i = 0; i < rounds; i++) {
        if (first && write(out, &byte, 1) != 1)
            abort();
        if (read(in, &byte, 1) != 1)
            abort();
        if (!first && write(out, &byte, 1) != 1)
            abort();
    }
}

/* The n-th of the CPUs that are allowed. */
static void pin(int n)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        abort();
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && n-- == 0)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one) == 1)
        sched_setaffinity(0, sizeof one, &one);
}

static void pipes(int apart)
{
    int there[2], back[2];
    pid_t child;

    if (pipe(there) != 0 || pipe(back) != 0 || (child = fork()) < 0)
        abort();
    if (apart)
        pin(child == 0);
    if (child == 0) {
        pass(there[0], back[1], 0);
        _exit(0);
    }
    pass(back[0], there[1], 1);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    rounds = atol(argv[2]);
    turn = mmap(NULL, 2 * sizeof *turn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turn == MAP_FAILED)
        return 2;
    sem_init(&turn[0], 1, strcmp(argv[1], "stay") != 0 && strcmp(argv[1], "own") != 0);
    sem_init(&turn[1], 1, 0);
    if (strcmp(argv[1], "stay") == 0)
        stay(1);
    else if (strcmp(argv[1], "own") == 0)
        stay(0);
    else if (strcmp(argv[1], "yield") == 0)
        yield();
    else if (strcmp(argv[1], "switch") == 0)
        switch_threads();
    else if (strcmp(argv[1], "process") == 0)
        switch_processes();
    else if (strcmp(argv[1], "clock") == 0)
        clocks();
    else if (strcmp(argv[1], "trap") == 0)
        traps();
    else if (strcmp(argv[1], "read") == 0 || strcmp(argv[1], "write") == 0)
        file(argv[1][0] == 'w');
    else if (strcmp(argv[1], "pipe") == 0 || strcmp(argv[1], "apart") == 0)
        pipes(argv[1][0] == 'a');
    else
        return 2;
    return 0;
}
