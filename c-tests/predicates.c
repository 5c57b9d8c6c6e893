/* Exclusive access predicates: the examples of Stoller and Cohen, Section 2 (semaphores, memory reuse, master and workers), and mutual
 * exclusion by a lock as in their introduction. The first argument is the example, `-broken` behind it a mistake in it; a second argument
 * `plain` leaves the predicates out. What is volatile is used as often as is written, however it is compiled. */
#include "t.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "../shim/include/vs.h"

static int states = 1;
#define OWN(p) (states ? VS_own(p, sizeof *(p)) : (void)0)
#define DISOWN(p) (states ? VS_disown(p, sizeof *(p)) : (void)0)
#define HAND_OVER(p, to) (states ? VS_hand_over(p, sizeof *(p), to) : (void)0)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static sem_t ready, again;
static int broken, v;

/* Section 9 of Stoller with a hand-over: what is written, then the semaphore; broken: the other way round. */
static void *gives(void *unused)
{
    if (broken)
        MUST(sem_post(&ready));
    v = 1;
    HAND_OVER(&v, VS_ANYBODY);
    if (!broken)
        MUST(sem_post(&ready));
    return unused;
}

static void *takes(void *unused)
{
    MUST(sem_wait(&ready));
    MUST(pthread_mutex_lock(&lock));
    v = 2;
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

/* A lock; broken: one of them lets go of it too early. */
static struct { volatile int count, sum; } counted;

static void *counts(void *early)
{
    MUST(pthread_mutex_lock(&lock));
    OWN(&counted);
    counted.count++;
    if (broken && early)
        MUST(pthread_mutex_unlock(&lock));
    counted.sum += counted.count;
    DISOWN(&counted);
    if (!(broken && early))
        MUST(pthread_mutex_unlock(&lock));
    return NULL;
}

/* A user thread gets a buffer from the pool, sends a request and waits for the semaphore; a driver serves the requests. Broken: the first user
 * reads its buffer before the request is served. */
struct buffer { volatile int data[2]; };
static struct buffer buffers[2];
static struct { int reads, buffer; sem_t *done; } requests[2];
static int used, sent, served;
static sem_t done[2];

static int get_buffer(void)
{
    MUST(pthread_mutex_lock(&other));
    int n = used++;
    MUST(pthread_mutex_unlock(&other));
    OWN(&buffers[n]);
    return n;
}

static void send(int reads, int buffer, sem_t *done)
{
    DISOWN(&buffers[buffer]);
    MUST(pthread_mutex_lock(&lock));
    requests[sent].reads = reads, requests[sent].buffer = buffer, requests[sent].done = done;
    sent++;
    MUST(pthread_mutex_unlock(&lock));
    MUST(sem_post(&ready));
}

static void *reads(void *unused)
{
    int b = get_buffer();
    send(1, b, &done[0]);
    if (!broken)
        MUST(sem_wait(&done[0]));
    OWN(&buffers[b]);
    int found = buffers[b].data[0] + buffers[b].data[1];
    if (!broken)
        VS_assert(found == 3);
    return unused;
}

static void *writes(void *unused)
{
    int b = get_buffer();
    buffers[b].data[0] = 4, buffers[b].data[1] = 5;
    send(0, b, &done[1]);
    MUST(sem_wait(&done[1]));
    return unused;
}

static void *drives(void *unused)
{
    for (int n = 0; n < 2; n++) {
        MUST(sem_wait(&ready));
        MUST(pthread_mutex_lock(&lock));
        int reads = requests[served].reads, b = requests[served].buffer;
        sem_t *done = requests[served++].done;
        MUST(pthread_mutex_unlock(&lock));
        OWN(&buffers[b]);
        if (reads) {
            buffers[b].data[0] = 1, buffers[b].data[1] = 2;
        } else {
            VS_assert(buffers[b].data[0] + buffers[b].data[1] == 9);
        }
        DISOWN(&buffers[b]);
        MUST(sem_post(done));
    }
    return unused;
}

/* A block is on the free list, under its lock, or in a file, under the file's. Broken: the second thread uses it when it has given it back. */
static struct { volatile int next, data; } block;
static int is_free = 1;
static struct { pthread_mutex_t lock; } files[2] = { { PTHREAD_MUTEX_INITIALIZER }, { PTHREAD_MUTEX_INITIALIZER } };

static void *uses_block(void *which)
{
    intptr_t file = (intptr_t)which;
    MUST(pthread_mutex_lock(&lock));
    int got = is_free;
    if (got) {
        OWN(&block);
        is_free = 0, block.next = -1;
        DISOWN(&block);
    }
    MUST(pthread_mutex_unlock(&lock));
    if (!got)
        return NULL;
    MUST(pthread_mutex_lock(&files[file].lock));
    OWN(&block);
    block.data = (int)file, block.next = 7;
    VS_assert(broken || block.data == file);
    DISOWN(&block);
    MUST(pthread_mutex_unlock(&files[file].lock));
    MUST(pthread_mutex_lock(&lock));
    OWN(&block);
    block.next = 0, is_free = 1;
    DISOWN(&block);
    MUST(pthread_mutex_unlock(&lock));
    if (broken && file == 1)
        block.data = 9;
    return NULL;
}

/* A master makes tasks and gives each to a worker. Broken: it changes a task that it has given away. */
static struct task { volatile int a, b, result; } tasks[2];
static struct { struct task *task; sem_t start; } workers[2];

static void *works(void *which)
{
    intptr_t w = (intptr_t)which;
    MUST(sem_wait(&workers[w].start));
    struct task *task = workers[w].task;
    task->result = task->a + task->b;
    HAND_OVER(task, VS_ANYBODY);
    MUST(sem_post(&again));
    return NULL;
}

static void master(void)
{
    pthread_t t[2];
    for (intptr_t w = 0; w < 2; w++) {
        MUST(sem_init(&workers[w].start, 0, 0));
        t[w] = go(works, (void *)w);
    }
    for (int w = 0; w < 2; w++) {
        OWN(&tasks[w]);
        tasks[w].a = w, tasks[w].b = 1;
        workers[w].task = &tasks[w];
        HAND_OVER(&tasks[w], t[w]);
        HAND_OVER(&workers[w].task, t[w]);
        MUST(sem_post(&workers[w].start));
        if (broken)
            tasks[w].b = 2;
    }
    for (int w = 0; w < 2; w++)
        MUST(sem_wait(&again));
    for (int w = 0; w < 2; w++)
        VS_assert(broken || tasks[w].result == w + 1);
    join(t[0]), join(t[1]);
}

/* What is said is wrong: both may own it at once, and one update is lost. */
static void *adds(void *unused)
{
    VS_own(&v, sizeof v);
    int found = *(volatile int *)&v;
    *(volatile int *)&v = found + 1;
    VS_disown(&v, sizeof v);
    return unused;
}

/* A thread waits for what it owns, which another one writes. */
static void *waits(void *unused)
{
    VS_own(&v, sizeof v);
    while (!*(volatile int *)&v)
        ;
    return unused;
}

static void *sets(void *unused)
{
    *(volatile int *)&v = 1;
    return unused;
}

/* A futex compares what another thread owns. */
static void *sleeps(void *unused)
{
    syscall(SYS_futex, &v, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}

static void *owns_and_sets(void *unused)
{
    VS_own(&v, sizeof v);
    *(volatile int *)&v = 1;
    return unused;
}

/* What is given up is nobody's, until the block is allocated anew. */
static void *allocates(void *unused)
{
    volatile int *block = malloc(64);
    VS_own(block, sizeof *block);
    *block = 1;
    VS_disown(block, sizeof *block);
    if (broken)
        *block = 2;
    free((void *)block);
    block = malloc(64);
    *block = 3;
    free((void *)block);
    return unused;
}

static void run(void *(*a)(void *), void *(*b)(void *), void *(*c)(void *))
{
    pthread_t t = go(a, (void *)0), u = go(b, (void *)1);
    if (c)
        join(go(c, NULL));
    join(t), join(u);
}

int main(int argc, char **argv)
{
    char *dash = argc > 1 ? strstr(argv[1], "-broken") : NULL;
    broken = dash != NULL;
    if (dash)
        *dash = 0;
    states = argc < 3;
    MUST(sem_init(&ready, 0, 0));
    MUST(sem_init(&again, 0, 0));
    MUST(sem_init(&done[0], 0, 0));
    MUST(sem_init(&done[1], 0, 0));
    if (arg_is(argc, argv, "section9"))
        run(gives, takes, NULL);
    else if (arg_is(argc, argv, "lock"))
        run(counts, counts, NULL);
    else if (arg_is(argc, argv, "semaphores"))
        run(reads, writes, drives);
    else if (arg_is(argc, argv, "reuse"))
        run(uses_block, uses_block, NULL);
    else if (arg_is(argc, argv, "master"))
        master();
    else if (arg_is(argc, argv, "anew"))
        run(allocates, counts, NULL);
    else if (arg_is(argc, argv, "wrong"))
        run(adds, adds, NULL);
    else if (arg_is(argc, argv, "waits"))
        run(waits, sets, NULL);
    else if (arg_is(argc, argv, "futex"))
        run(owns_and_sets, sleeps, NULL);
    else
        return 9;
    if (arg_is(argc, argv, "wrong"))
        VS_assert(v == 2);
    return 0;
}
