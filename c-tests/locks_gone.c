/* A thread uses a lock, a semaphore or a condition variable whose memory another one gives back or sets up anew, in no order: each order is found. What is
   ordered by the object itself is as it should be. */
#define _GNU_SOURCE
#include "t.h"
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../shim/include/vs.h"

struct box {
    pthread_mutex_t m;
    pthread_cond_t c;
    pthread_rwlock_t l;
    pthread_spinlock_t s;
    pthread_barrier_t b;
    sem_t sem;
    int n, done;
};

static struct box *box, fixed_box;
static void (*use)(void);
static int fixed;

static void set_up(struct box *one)
{
    MUST(pthread_mutex_init(&one->m, NULL) || pthread_cond_init(&one->c, NULL) || pthread_rwlock_init(&one->l, NULL) ||
         pthread_spin_init(&one->s, 0) || pthread_barrier_init(&one->b, NULL, 1) || sem_init(&one->sem, 0, 1));
    one->n = 2;
    one->done = 0;
}

static void uses_mutex(void) { MUST(pthread_mutex_lock(&box->m) || pthread_mutex_unlock(&box->m)); }
static void tries_mutex(void) { if (!pthread_mutex_trylock(&box->m)) MUST(pthread_mutex_unlock(&box->m)); }
static void signals(void) { MUST(pthread_cond_signal(&box->c)); }
static void reads_lock(void) { MUST(pthread_rwlock_rdlock(&box->l) || pthread_rwlock_unlock(&box->l)); }
static void spins(void) { MUST(pthread_spin_lock(&box->s) || pthread_spin_unlock(&box->s)); }
static void meets(void) { MUST(pthread_barrier_wait(&box->b) != PTHREAD_BARRIER_SERIAL_THREAD); }
static void posts(void) { MUST(sem_post(&box->sem)); }
static void waits(void) { MUST(sem_wait(&box->sem)); }

static void *runs(void *arg)
{
    use();
    return arg;
}

/* What counts who has it is freed by the last one. */
static void *leaves(void *arg)
{
    MUST(pthread_mutex_lock(&box->m));
    int last = --box->n == 0;
    MUST(pthread_mutex_unlock(&box->m));
    if (last) {
        MUST(pthread_mutex_destroy(&box->m));
        free(box);
    }
    return arg;
}

/* The one that waits may have seen it, and gone, before it is told. */
static void *tells_late(void *arg)
{
    MUST(pthread_mutex_lock(&box->m));
    box->done = 1;
    if (fixed)
        MUST(pthread_cond_signal(&box->c));
    MUST(pthread_mutex_unlock(&box->m));
    if (!fixed)
        MUST(pthread_cond_signal(&box->c));
    return arg;
}

static void awaits_done(void)
{
    MUST(pthread_mutex_lock(&box->m));
    while (!box->done)
        MUST(pthread_cond_wait(&box->c, &box->m));
    MUST(pthread_mutex_unlock(&box->m));
    free(box);
}

static const struct { const char *name; void (*use)(void); } ALL[] = {
    { "mutex", uses_mutex }, { "try", tries_mutex }, { "signal", signals }, { "rwlock", reads_lock },
    { "spin", spins }, { "barrier", meets }, { "post", posts }, { "wait", waits },
};

int main(int argc, char **argv)
{
    pthread_t t, u;
    MUST(argc != 4);
    for (unsigned n = 0; n < sizeof ALL / sizeof *ALL; n++)
        if (!strcmp(ALL[n].name, argv[2]))
            use = ALL[n].use;
    fixed = !strcmp(argv[3], "fixed");
    if (!strcmp(argv[1], "unmapped")) {
        box = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(box == MAP_FAILED);
    } else if (!strcmp(argv[1], "set_up")) {
        box = &fixed_box;
        if (fixed)
            set_up(box);
        t = go(runs, NULL);
        if (!fixed)
            set_up(box);
        join(t);
        return 0;
    } else {
        box = malloc(sizeof *box);
    }
    set_up(box);
    if (!strcmp(argv[1], "counted")) {
        t = go(leaves, NULL), u = go(leaves, NULL);
        join(t), join(u);
        return 0;
    }
    if (!strcmp(argv[1], "told")) {
        t = go(tells_late, NULL);
        awaits_done();
        join(t);
        return 0;
    }
    /* Who owns all of it is told by a semaphore in it. */
    if (!strcmp(argv[1], "owned")) {
        MUST(sem_wait(&box->sem));
        use = posts;
        VS_own(box, sizeof *box);
        t = go(runs, NULL);
        box->n++;
        MUST(sem_wait(&box->sem));
        box->n++;
        VS_disown(box, sizeof *box);
        join(t);
        return 0;
    }
    if (!strcmp(argv[1], "posted")) {
        MUST(sem_wait(&box->sem));
        use = posts;
        t = go(runs, NULL);
        MUST(sem_wait(&box->sem));
        free(box);
        join(t);
        return 0;
    }
    t = go(runs, NULL);
    if (fixed)
        join(t);
    if (!strcmp(argv[1], "unmapped"))
        MUST(munmap(box, 4096));
    else
        free(box);
    if (!fixed)
        join(t);
    return 0;
}
