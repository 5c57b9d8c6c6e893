/*
 * What tells states apart that is not in memory, and what in memory is dead and what is not: --search stateful. One of two ways is tossed, which leaves no other
 * trace, and decides what comes after an operation. The loops without an end have few states.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../shim/include/vs.h"

#define APART __attribute__((noinline))
#define PAGE 4096
#define STACK 65536

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t go;
static char stack[STACK] __attribute__((aligned(16)));
static ucontext_t apart, first;
static volatile char *at;
static int fd, ends[2];

static APART void operation(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

/* What was left on the stack is no trace either. */
static APART void wipe(void)
{
    volatile char used[9000];
    for (unsigned i = 0; i < sizeof used; i++)
        used[i] = 0;
}

static void *waits(void *arg)
{
    operation();
    sem_wait(&go);
    return arg;
}

static void *does(void *arg)
{
    operation();
    return arg;
}

static APART char *mapped(int prot)
{
    return mmap(0, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static APART void runs_on(char *given)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, given, STACK);
    VS_assert(!pthread_create(&thread, &attr, does, 0));
    pthread_join(thread, 0);
}

/* On a stack from malloc, or in a frame of the thread's own. */
static void on_context(void)
{
    *at = VS_toss(1);
    wipe();
    operation();
    VS_assert(!*at);
    swapcontext(&apart, &first);
}

struct frame {
    volatile char first[100];
    char stack[STACK];
};

static void *in_frame(void *arg)
{
    struct frame frame = {{0}};
    at = frame.first;
    getcontext(&apart);
    apart.uc_stack.ss_sp = frame.stack;
    apart.uc_stack.ss_size = STACK;
    makecontext(&apart, on_context, 0);
    swapcontext(&first, &apart);
    return arg;
}

static APART void tossed(const char *what)
{
    int other = VS_toss(1);
    if (!strcmp(what, "mmap"))
        at = mapped(other ? PROT_READ : PROT_READ | PROT_WRITE);
    if (!strcmp(what, "mprotect"))
        mprotect((void *)at, PAGE, other ? PROT_NONE : PROT_READ);
    if (!strcmp(what, "open"))
        fd = open("/dev/null", O_RDONLY | (other ? O_NONBLOCK : 0));
    if (!strcmp(what, "slept"))
        for (int n = other ? 11 : 10; n; n--)
            sleep(100);
    if (!strcmp(what, "cloexec"))
        fcntl(ends[0], F_SETFD, other ? FD_CLOEXEC : 0);
    if (!strcmp(what, "stack") || !strcmp(what, "stack_freed"))
        at[100] = other;
}

static APART void asked(const char *what)
{
    if (!strcmp(what, "mmap"))
        *at = 1;
    if (!strcmp(what, "mprotect"))
        VS_assert(*at == 1);
    if (!strcmp(what, "open"))
        VS_assert(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    if (!strcmp(what, "left")) {
        /* What is left of a timeout is less than it was. */
        struct timeval left = {1, 0};
        fd_set none;
        FD_ZERO(&none);
        FD_SET(ends[1], &none);
        VS_assert(select(ends[1] + 1, 0, &none, 0, &left) == 1 && left.tv_sec == 0);
    }
    if (!strcmp(what, "slept")) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        VS_assert(now.tv_sec < 1050);
    }
    if (!strcmp(what, "cloexec"))
        VS_assert(!fcntl(ends[0], F_GETFD));
    if (!strcmp(what, "stack") || !strcmp(what, "stack_freed"))
        VS_assert(!at[100]);
}

static APART void prepared(const char *what)
{
    if (!strcmp(what, "mprotect"))
        *(at = mapped(PROT_READ | PROT_WRITE)) = 1;
    if (!strcmp(what, "cloexec") || !strcmp(what, "left"))
        VS_assert(!pipe(ends));
    if (!strcmp(what, "stack"))
        runs_on(stack), at = stack;
    if (!strcmp(what, "stack_freed")) {
        char *given = malloc(STACK);
        runs_on(given);
        free(given);
        at = malloc(STACK / 2);
    }
}

static void *goes_round(void *what)
{
    for (;;) {
        if (!strcmp(what, "rounds"))
            pthread_barrier_wait(&barrier);
        if (!strcmp(what, "maps")) {
            char *piece = mapped(PROT_READ | PROT_WRITE);
            *piece = 1;
            operation();
            munmap(piece, PAGE);
        }
        if (!strcmp(what, "makes")) {
            pthread_mutex_t own;
            pthread_mutex_init(&own, 0);
            pthread_mutex_lock(&own);
            operation();
            pthread_mutex_unlock(&own);
            pthread_mutex_destroy(&own);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "mmap";
    pthread_t thread[2];
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&go, 0, 0);
    if (!strcmp(what, "rounds") || !strcmp(what, "maps") || !strcmp(what, "makes")) {
        pthread_create(&thread[0], 0, goes_round, (void *)what);
        pthread_create(&thread[1], 0, goes_round, (void *)what);
        return pthread_join(thread[0], 0);
    }
    operation();
    if (!strcmp(what, "context")) {
        at = malloc(100);
        getcontext(&apart);
        apart.uc_stack.ss_sp = malloc(STACK);
        apart.uc_stack.ss_size = STACK;
        makecontext(&apart, on_context, 0);
    }
    pthread_create(&thread[0], 0, waits, 0);
    if (!strcmp(what, "frame")) {
        pthread_create(&thread[1], 0, in_frame, 0);
        pthread_join(thread[1], 0);
    } else if (!strcmp(what, "context")) {
        swapcontext(&first, &apart);
    } else {
        operation();
        prepared(what);
        tossed(what);
        wipe();
        operation();
        asked(what);
    }
    sem_post(&go);
    return pthread_join(thread[0], 0);
}
