/* Exclusive access predicates that an annotation file states, of code that knows nothing of them: a lock whose users enter and leave, blocks of a
 * pool that are got and put back, jobs that are handed to a thread, a table that is set up and then given away. The first argument is the example,
 * `-broken` behind it a mistake in it. What is volatile is used as often as is written, however it is compiled. */
#include "t.h"

#define FUNCTION __attribute__((noinline, noclone))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static sem_t ready;
static int broken;

/* A lock: own after enter counted, disown leave counted. Broken: one of them lets go too early. */
static struct { volatile int count, sum; } counted;

FUNCTION void enter(void) { MUST(pthread_mutex_lock(&lock)); }
FUNCTION void leave(void) { MUST(pthread_mutex_unlock(&lock)); }

static void *counts(void *early)
{
    enter();
    counted.count++;
    if (broken && early)
        leave();
    counted.sum += counted.count;
    if (!(broken && early))
        leave();
    return NULL;
}

/* A pool of one block: own after get_block $result:8, disown put_block $arg1:$arg2. Broken: it is used once more. */
static volatile int block[2];
static int taken;

FUNCTION volatile int *get_block(int tries)
{
    volatile int *found = NULL;
    if (tries <= 0)
        return NULL;
    MUST(pthread_mutex_lock(&lock));
    if (!taken)
        taken = 1, found = block;
    MUST(pthread_mutex_unlock(&lock));
    return found;
}

FUNCTION void put_block(volatile int *old, unsigned long size)
{
    MUST(size == sizeof block ? 0 : -1);
    MUST(pthread_mutex_lock(&lock));
    taken = 0;
    MUST(pthread_mutex_unlock(&lock));
}

static void *uses_block(void *again)
{
    volatile int *own = get_block(1);
    if (!own)
        return NULL;
    own[0] = 1, own[1] = own[0] + 1;
    put_block(own, sizeof block);
    if (broken && again)
        own[0] = 3;
    return NULL;
}

/* A job that one thread works on, and then another one: hand-over submit $arg1:4 to $arg2. Broken: the first to work is not who has it. */
static volatile int job;
static pthread_t workers[2];
static sem_t have[2];

FUNCTION void submit(volatile int *what, pthread_t to, sem_t *wakes)
{
    MUST(what && to ? 0 : -1);
    MUST(sem_post(wakes));
}

static void *works(void *n)
{
    MUST(sem_wait(&have[(long) n]));
    job = job + 1;
    if (!n)
        submit(&job, workers[1], &have[1]);
    return NULL;
}

/* A table of two halves: disown published table+8:8, or +8, the second half. Broken: somebody uses that. */
static volatile int table[4];

FUNCTION void published(void) { MUST(sem_post(&ready)); }

static void *reads_table(void *unused)
{
    MUST(sem_wait(&ready));
    MUST(pthread_mutex_lock(&other));
    table[broken ? 2 : 1] = table[0];
    MUST(pthread_mutex_unlock(&other));
    return unused;
}

static void two(void *(*f)(void *))
{
    pthread_t threads[2];
    for (long n = 0; n < 2; n++)
        MUST(pthread_create(&threads[n], NULL, f, (void *) n));
    for (int n = 0; n < 2; n++)
        MUST(pthread_join(threads[n], NULL));
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    broken = strstr(what, "-broken") != NULL;
    MUST(sem_init(&ready, 0, 0) | sem_init(&have[0], 0, 0) | sem_init(&have[1], 0, 0));
    if (!strncmp(what, "lock", 4))
        two(counts);
    else if (!strncmp(what, "pool", 4))
        two(uses_block);
    else if (!strncmp(what, "jobs", 4)) {
        job = 1;
        for (long n = 0; n < 2; n++)
            MUST(pthread_create(&workers[n], NULL, works, (void *) n));
        submit(&job, workers[broken], &have[0]);
        for (int n = 0; n < 2; n++)
            MUST(pthread_join(workers[n], NULL));
    } else if (!strncmp(what, "table", 5)) {
        pthread_t thread;
        table[0] = 1, table[2] = 2;
        MUST(pthread_create(&thread, NULL, reads_table, NULL));
        published();
        MUST(pthread_join(thread, NULL));
    }
    return 0;
}
