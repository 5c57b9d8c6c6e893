/* What the generated programs of a batch have in common: their memory, what they synchronize by, and how they tell their outcome. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BAR __asm__ volatile("" : : : "memory")
#define MOST 3

typedef unsigned long v2 __attribute__((vector_size(16), may_alias));

struct cells {
    volatile unsigned long l;
    volatile unsigned int i[2];
    volatile unsigned char c[2];
    volatile unsigned short h;
    char gap[4];
    struct { volatile unsigned char low : 3, high : 5; } bits;
    char rest[7];
    volatile unsigned long v[2];
    char end[16];
} __attribute__((aligned(16)));

struct whole {
    struct cells cells;
    unsigned long own[MOST][3];
    pthread_mutex_t mutex;
    pthread_rwlock_t rw;
    pthread_barrier_t barrier;
    sem_t sem;
};

static struct cells *C;
static struct whole *W;
static int event, ends[2];
static size_t sixteen = 16;
static struct whole global;

#define CALL(name, ...) static inline unsigned long do_##name(unsigned long r) { (void)r; __VA_ARGS__ }
CALL(post, return sem_post(&W->sem);)
CALL(wait, return sem_wait(&W->sem);)
CALL(trywait, return sem_trywait(&W->sem) != 0;)
CALL(value, int n; sem_getvalue(&W->sem, &n); return n;)
CALL(lock, return pthread_mutex_lock(&W->mutex);)
CALL(trylock, return pthread_mutex_trylock(&W->mutex) != 0;)
CALL(unlock, return pthread_mutex_unlock(&W->mutex);)
CALL(readlock, return pthread_rwlock_rdlock(&W->rw);)
CALL(writelock, return pthread_rwlock_wrlock(&W->rw);)
CALL(tryread, return pthread_rwlock_tryrdlock(&W->rw) != 0;)
CALL(trywrite, return pthread_rwlock_trywrlock(&W->rw) != 0;)
CALL(release, return pthread_rwlock_unlock(&W->rw);)
CALL(eventadd, return eventfd_write(event, 1);)
CALL(eventtake, eventfd_t n; if (eventfd_read(event, &n)) abort(); return n;)
CALL(send, return write(ends[1], "x", 1) != 1;)
CALL(receive, char c; return read(ends[0], &c, 1) != 1;)
CALL(meet, pthread_barrier_wait(&W->barrier); return 0;)
CALL(yield, return sched_yield();)

static inline int swap_wide(volatile void *at, unsigned long e0, unsigned long e1, unsigned long n0, unsigned long n1)
{
    return __sync_bool_compare_and_swap((volatile unsigned __int128 *)at, (unsigned __int128)e1 << 64 | e0, (unsigned __int128)n1 << 64 | n0);
}

enum { GLOBAL, HEAP, STACK, MAPPED };

/* Runs the bodies, and appends the outcome to the file. */
static int all(void *(*const *body)(void *), long n, int place, int first, int posted, const char *file)
{
    struct whole local;
    pthread_mutexattr_t ma;
    pthread_rwlockattr_t ra;
    pthread_barrierattr_t ba;
    pthread_t threads[MOST];
    int shared = place == MAPPED, value, out, used;
    char text[400];

    W = place == GLOBAL ? &global : place == HEAP ? aligned_alloc(16, sizeof *W) : place == STACK ? &local
        : mmap(NULL, sizeof *W, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(W, 0, sizeof *W);
    C = &W->cells;
    pthread_mutexattr_init(&ma), pthread_mutexattr_setpshared(&ma, shared), pthread_mutex_init(&W->mutex, &ma);
    pthread_rwlockattr_init(&ra), pthread_rwlockattr_setpshared(&ra, shared), pthread_rwlock_init(&W->rw, &ra);
    pthread_barrierattr_init(&ba), pthread_barrierattr_setpshared(&ba, shared), pthread_barrier_init(&W->barrier, &ba, 2);
    sem_init(&W->sem, shared, posted);
    event = eventfd(0, 0);
    if (event < 0 || pipe(ends))
        abort();
    for (long i = first; i < n; i++) {
        if (!shared) {
            if (pthread_create(&threads[i], NULL, body[i], (void *)i))
                abort();
        } else if (fork() == 0) {
            body[i]((void *)i);
            _exit(0);
        }
    }
    if (first)
        body[0]((void *)0);
    for (long i = first; i < n; i++)
        if (shared ? wait(NULL) < 0 : pthread_join(threads[i], NULL))
            abort();
    used = 0;
    for (unsigned i = 0; i < sizeof *C; i++)
        used += sprintf(text + used, "%02x", ((unsigned char *)C)[i]);
    sem_getvalue(&W->sem, &value);
    used += sprintf(text + used, " %d", value);
    for (long i = 0; i < n; i++)
        used += sprintf(text + used, " %lu %lu %lu", W->own[i][0], W->own[i][1], W->own[i][2]);
    text[used++] = '\n';
    out = open(file, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (out < 0 || write(out, text, used) != used)
        abort();
    return 0;
}
