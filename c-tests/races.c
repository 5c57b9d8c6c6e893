/* Uses of memory that --race hb, lockset and both report, and what they do not. The first argument is the shape. */
#include "t.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER, third = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t ready, again;
static int v, w, flag, table[4];
static struct { int left, right; } two;
static int *volatile handed;

static void *(*bodies[3])(void *);

static void run(void *(*a)(void *), void *(*b)(void *), void *(*c)(void *))
{
    pthread_t t[3];
    bodies[0] = a, bodies[1] = b, bodies[2] = c;
    for (int i = 0; i < 3; i++)
        if (bodies[i])
            t[i] = go(bodies[i], (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++)
        if (bodies[i])
            join(t[i]);
}

/* Section 9 of Stoller: sem.up; v = 1 beside sem.down; acquire; v = 2; release. */
static void *ups(void *unused)
{
    MUST(sem_post(&ready));
    v = 1;
    return unused;
}

static void *downs(void *unused)
{
    MUST(sem_wait(&ready));
    MUST(pthread_mutex_lock(&first));
    v = 2;
    MUST(pthread_mutex_unlock(&first));
    return unused;
}

/* The same with the hand-over in the right order. */
static void *hands_over(void *unused)
{
    v = 1;
    MUST(sem_post(&ready));
    return unused;
}

/* Two locks for one variable. */
static void *under_first(void *unused)
{
    MUST(pthread_mutex_lock(&first));
    v++;
    MUST(pthread_mutex_unlock(&first));
    return unused;
}

static void *under_second(void *unused)
{
    MUST(pthread_mutex_lock(&second));
    v++;
    MUST(pthread_mutex_unlock(&second));
    return unused;
}

/* Each two of three hold a lock in common, all three do not. */
static void *under_two(void *which)
{
    pthread_mutex_t *all[] = { &first, &second, &third };
    pthread_mutex_t *one = all[(intptr_t)which], *other = all[((intptr_t)which + 1) % 3];
    if (one > other) {
        pthread_mutex_t *swapped = one;
        one = other;
        other = swapped;
    }
    MUST(pthread_mutex_lock(one));
    MUST(pthread_mutex_lock(other));
    v++;
    MUST(pthread_mutex_unlock(other));
    MUST(pthread_mutex_unlock(one));
    return NULL;
}

/* Read-write locks: who writes has to have it for writing. */
static void *looks_shared(void *unused)
{
    MUST(pthread_rwlock_rdlock(&rw));
    int seen = *(volatile int *)&v;
    MUST(pthread_rwlock_unlock(&rw));
    (void)seen;
    return unused;
}

static void *writes_alone(void *unused)
{
    MUST(pthread_rwlock_wrlock(&rw));
    v++;
    MUST(pthread_rwlock_unlock(&rw));
    return unused;
}

static void *writes_shared(void *unused)
{
    MUST(pthread_rwlock_rdlock(&rw));
    v++;
    MUST(pthread_rwlock_unlock(&rw));
    return unused;
}

/* Read-only once it is set up: what the first thread writes into a block that it has just allocated. */
static void *sets_up(void *unused)
{
    int *block = malloc(sizeof *block);
    *block = 7;
    MUST(pthread_mutex_lock(&first));
    handed = block;
    MUST(pthread_mutex_unlock(&first));
    MUST(sem_post(&ready));
    MUST(sem_post(&ready));
    return unused;
}

static void *looks(void *unused)
{
    MUST(sem_wait(&ready));
    MUST(pthread_mutex_lock(&first));
    int *block = handed;
    MUST(pthread_mutex_unlock(&first));
    assert(*(volatile int *)block >= 7);
    return unused;
}

/* The same, and written once more, in an order that the semaphores keep. */
static void *sets_up_twice(void *unused)
{
    sets_up(unused);
    MUST(sem_wait(&again));
    MUST(sem_wait(&again));
    *handed = 8;
    return unused;
}

static void *looks_and_says(void *unused)
{
    looks(unused);
    MUST(sem_post(&again));
    return unused;
}

/* A flag that is an atomic variable in the source, and what it guards. */
static void *publishes(void *unused)
{
    v = 1;
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *subscribes(void *unused)
{
    if (__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
        v++;
    return unused;
}

/* Updates that are atomic. */
static void *adds(void *unused)
{
    __atomic_fetch_add(&v, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *peeks(void *unused)
{
    w = v;
    return unused;
}

/* Several pairs: the write of one beside two reads of the other, one variable behind another. */
static void *writes_both(void *unused)
{
    v = 1;
    w = 1;
    return unused;
}

static void *reads_both(void *unused)
{
    volatile int *one = &w, *other = &v;
    (void)*one;
    (void)*other;
    return unused;
}

/* A bug that shows only because of the race. */
static void *checks(void *unused)
{
    volatile int *at = &v;
    int before = *at;
    assert(*at == before);
    return unused;
}

static void *writes(void *unused)
{
    v = 1;
    return unused;
}

static void *writes_table(void *which)
{
    for (int i = 0; i < 4; i++)
        ((volatile int *)table)[i] = (int)(intptr_t)which;
    return NULL;
}

/* Two variables in one word, each with a lock of its own. */
static void *sets_left(void *unused)
{
    MUST(pthread_mutex_lock(&first));
    two.left++;
    MUST(pthread_mutex_unlock(&first));
    return unused;
}

static void *sets_right(void *unused)
{
    MUST(pthread_mutex_lock(&second));
    two.right++;
    MUST(pthread_mutex_unlock(&second));
    return unused;
}

/* A lock that is tried, and used whether it was got or not. */
static void *tries(void *unused)
{
    int got = pthread_mutex_trylock(&first);
    v++;
    if (got == 0)
        MUST(pthread_mutex_unlock(&first));
    return unused;
}

/* One thread before it creates another, or after it has joined it. */
static void *one_then_other(void *unused)
{
    v++;
    join(go(writes, NULL));
    v++;
    return unused;
}

/* What an initializer writes, and those read who find it done. */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initializes(void)
{
    v = 1;
}

static void *needs(void *unused)
{
    MUST(pthread_once(&once, initializes));
    assert(*(volatile int *)&v == 1);
    return unused;
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *waits(void *unused)
{
    MUST(pthread_mutex_lock(&first));
    while (!flag)
        MUST(pthread_cond_wait(&changed, &first));
    v++;
    MUST(pthread_mutex_unlock(&first));
    return unused;
}

static void *signals(void *unused)
{
    MUST(pthread_mutex_lock(&first));
    flag = 1;
    v++;
    MUST(pthread_cond_signal(&changed));
    MUST(pthread_mutex_unlock(&first));
    return unused;
}

int main(int argc, char **argv)
{
    const char *shape = argc > 1 ? argv[1] : "";
    if (strcmp(shape, "section9") == 0)
        run(ups, downs, NULL);
    else if (strcmp(shape, "handover") == 0)
        run(hands_over, downs, NULL);
    else if (strcmp(shape, "locks") == 0)
        run(under_first, under_second, NULL);
    else if (strcmp(shape, "same-lock") == 0)
        run(under_first, under_first, under_first);
    else if (strcmp(shape, "pairwise") == 0)
        run(under_two, under_two, under_two);
    else if (strcmp(shape, "rwlock") == 0)
        run(looks_shared, looks_shared, writes_alone);
    else if (strcmp(shape, "rwlock-shared") == 0)
        run(looks_shared, writes_shared, NULL);
    else if (strcmp(shape, "read-only") == 0)
        run(sets_up, looks, looks);
    else if (strcmp(shape, "read-only-not") == 0)
        run(sets_up_twice, looks_and_says, looks_and_says);
    else if (strcmp(shape, "atomic-flag") == 0)
        run(publishes, subscribes, NULL);
    else if (strcmp(shape, "atomic") == 0)
        run(adds, adds, NULL);
    else if (strcmp(shape, "atomic-plain") == 0)
        run(adds, peeks, NULL);
    else if (strcmp(shape, "two") == 0)
        run(writes_both, reads_both, NULL);
    else if (strcmp(shape, "bug") == 0)
        run(checks, writes, NULL);
    else if (strcmp(shape, "table") == 0)
        run(writes_table, writes_table, NULL);
    else if (strcmp(shape, "word") == 0)
        run(sets_left, sets_right, sets_left);
    else if (strcmp(shape, "try") == 0)
        run(tries, under_first, NULL);
    else if (strcmp(shape, "lives") == 0)
        run(one_then_other, NULL, NULL);
    else if (strcmp(shape, "condition") == 0)
        run(waits, signals, NULL);
    else if (strcmp(shape, "once") == 0)
        run(needs, needs, NULL);
    else
        return 2;
    return 0;
}
