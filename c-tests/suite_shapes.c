/* Shapes of small programs that public suites are made of. "NAME" and, where there is one, the same put right, "NAME-fixed". */
#include <sys/uio.h>

#include "t.h"
#include "../shim/include/vs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t ready;
static int fixed, number, ends[2];

/* Two flags in one word: each thread raises its own and waits until the other's is down. Put right, one does not wait. */
static struct { volatile int first, second; } flags __attribute__((aligned(8)));

static void *raises_first(void *unused)
{
    flags.first = 1;
    __sync_synchronize();
    while (flags.second == 1 && !fixed)
        ;
    flags.first = 0;
    return unused;
}

static void *raises_second(void *unused)
{
    flags.second = 1;
    __sync_synchronize();
    while (flags.first == 1)
        ;
    flags.second = 0;
    return unused;
}

/* A number that is read from a stream into a variable of another thread's. */
static void *counts(void *unused)
{
    if (fixed)
        MUST(pthread_mutex_lock(&lock));
    number++;
    if (fixed)
        MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void scan(void)
{
    FILE *stream = fdopen(ends[0], "r");
    assert(stream != NULL && write(ends[1], "41\n", 3) == 3 && close(ends[1]) == 0);
    if (fixed)
        MUST(pthread_mutex_lock(&lock));
    assert(fscanf(stream, "%d", &number) == 1);
    if (fixed)
        MUST(pthread_mutex_unlock(&lock));
    fclose(stream);
}

/* Data that is read to where another thread writes; its message says that it has. */
static void *writes_and_tells(void *unused)
{
    if (fixed)
        number = 7;
    assert(write(ends[1], "abcd", 4) == 4);
    if (!fixed)
        number = 7;
    return unused;
}

static void scatter(void)
{
    struct iovec place = { &number, sizeof number };
    assert(readv(ends[0], &place, 1) == 4);
}

/* A semaphore that others post, too. */
static void *makes(void *unused)
{
    number = 1;
    sem_post(&ready);
    return unused;
}

static void *posts(void *unused)
{
    if (!fixed)
        sem_post(&ready);
    return unused;
}

/* Neighbours in one byte. */
static struct { unsigned low : 4, high : 4; } bits;

static void *sets_low(void *unused)
{
    if (fixed)
        MUST(pthread_mutex_lock(&lock));
    bits.low = 3;
    if (fixed)
        MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void set_high(void)
{
    if (fixed)
        MUST(pthread_mutex_lock(&lock));
    bits.high = 5;
    if (fixed)
        MUST(pthread_mutex_unlock(&lock));
}

/* The destructor of a thread's own value is its last code, and may fail like other code. */
static pthread_key_t key;

static void ends_with(void *value)
{
    VS_assert(fixed || value == NULL);
}

static void *has_own(void *unused)
{
    MUST(pthread_setspecific(key, &number));
    return unused;
}

/* A length that is asked for before what it is the length of is used. */
static int length = 3;

static void *empties(void *unused)
{
    MUST(pthread_mutex_lock(&lock));
    length = 0;
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void take_out(void)
{
    MUST(pthread_mutex_lock(&lock));
    int n = length;
    if (!fixed) {
        MUST(pthread_mutex_unlock(&lock));
        MUST(pthread_mutex_lock(&lock));
    }
    VS_assert(n <= length);
    MUST(pthread_mutex_unlock(&lock));
}

/* A condition that is waited for once, by two, of whom one takes it away again. */
static void *takes(void *unused)
{
    MUST(pthread_mutex_lock(&lock));
    while (number == 0) {
        MUST(pthread_cond_wait(&changed, &lock));
        if (!fixed)
            break;
    }
    VS_assert(number-- > 0);
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void give(int n)
{
    MUST(pthread_mutex_lock(&lock));
    number += n;
    MUST(pthread_cond_broadcast(&changed));
    MUST(pthread_mutex_unlock(&lock));
}

/* What is taken back behind a barrier, while others may still look. */
static int there[2];

static void *meets(void *mine)
{
    int me = mine != NULL;
    there[me] = 1;
    pthread_barrier_wait(&barrier);
    VS_assert(there[1 - me] == 1);
    if (fixed)
        pthread_barrier_wait(&barrier);
    there[me] = 0;
    return NULL;
}

static void both(void *(*one)(void *), void *(*other)(void *), void *argument)
{
    pthread_t a = go(one, NULL), b = go(other, argument);
    join(a);
    join(b);
}

static void beside(void *(*one)(void *), void (*main_does)(void))
{
    pthread_t a = go(one, NULL);
    main_does();
    join(a);
}

int main(int argc, char **argv)
{
    assert(argc == 2);
    char *dash = strchr(argv[1], '-');
    fixed = dash != NULL;
    if (dash != NULL)
        *dash = 0;
    if (strcmp(argv[1], "neighbours") == 0)
        both(raises_first, raises_second, NULL);
    if (strcmp(argv[1], "scan") == 0) {
        assert(pipe(ends) == 0);
        beside(counts, scan);
    }
    if (strcmp(argv[1], "scatter") == 0) {
        assert(pipe(ends) == 0);
        beside(writes_and_tells, scatter);
    }
    if (strcmp(argv[1], "semaphore") == 0) {
        MUST(sem_init(&ready, 0, 0));
        pthread_t a = go(makes, NULL), b = go(posts, NULL);
        sem_wait(&ready);
        number++;
        join(a);
        join(b);
    }
    if (strcmp(argv[1], "bits") == 0) {
        beside(sets_low, set_high);
        VS_assert(bits.low == 3 && bits.high == 5);
    }
    if (strcmp(argv[1], "destructor") == 0) {
        MUST(pthread_key_create(&key, ends_with));
        both(has_own, has_own, NULL);
    }
    if (strcmp(argv[1], "length") == 0)
        beside(empties, take_out);
    if (strcmp(argv[1], "taken") == 0) {
        pthread_t a = go(takes, NULL), b = go(takes, NULL);
        give(1);
        give(1);
        join(a);
        join(b);
    }
    if (strcmp(argv[1], "phases") == 0) {
        MUST(pthread_barrier_init(&barrier, NULL, 2));
        both(meets, meets, &number);
    }
    return 0;
}
