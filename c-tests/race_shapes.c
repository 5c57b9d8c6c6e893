/* What threads do to memory, and whether anything that is visible keeps its order. Each shape has a variant "NAME" where nothing does,
 * and "NAME-fixed". The last ones are in order by what is no lock. */
#include "t.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static sem_t ready;
static int counter, stopped, users;
static int *place;
static struct { char pad[3]; char left, right; } bytes;
static struct { long long one, two; } pair;

static int fixed;

static void lock(pthread_mutex_t *m)
{
    if (fixed)
        MUST(pthread_mutex_lock(m));
}

static void unlock(pthread_mutex_t *m)
{
    if (fixed)
        MUST(pthread_mutex_unlock(m));
}

static void *counts(void *unused)
{
    lock(&first);
    counter++;
    unlock(&first);
    return unused;
}

/* Two locks for one variable, or one. */
static void *counts_under(void *which)
{
    pthread_mutex_t *m = fixed || which == NULL ? &first : &second;
    MUST(pthread_mutex_lock(m));
    counter++;
    MUST(pthread_mutex_unlock(m));
    return NULL;
}

/* A driver that is stopped while it is used. */
static void *stops(void *unused)
{
    lock(&first);
    stopped = 1;
    int used = users;
    unlock(&first);
    (void)used;
    return unused;
}

static void *uses(void *unused)
{
    lock(&first);
    if (!stopped)
        users++;
    unlock(&first);
    return unused;
}

/* A place that is set up when it is first needed. */
static void *sets_up(void *unused)
{
    if (fixed || __atomic_load_n(&place, __ATOMIC_RELAXED) == NULL) {
        MUST(pthread_mutex_lock(&first));
        if (place == NULL) {
            int *made = malloc(sizeof *made);
            assert(made != NULL);
            *made = 1;
            place = made;
        }
        MUST(pthread_mutex_unlock(&first));
    }
    return unused;
}

/* A variable of main's. */
static void *adds(void *local)
{
    lock(&first);
    ++*(int *)local;
    unlock(&first);
    return NULL;
}

static void *copies(void *to)
{
    lock(&first);
    if (to == NULL) {
        pair.one = pair.two = 1;
    } else {
        /* By libc. */
        memcpy(to, &pair, sizeof pair);
    }
    unlock(&first);
    return NULL;
}

/* Bytes of one word are variables of their own. */
static void *sets_left(void *unused)
{
    bytes.left++;
    return unused;
}

static void *sets_right(void *unused)
{
    bytes.right++;
    return unused;
}

static void *hands_over(void *unused)
{
    counter = 1;
    MUST(sem_post(&ready));
    return unused;
}

static void *takes_over(void *unused)
{
    MUST(sem_wait(&ready));
    counter = 2;
    return unused;
}

static void both(void *(*one)(void *), void *a, void *(*other)(void *), void *b)
{
    pthread_t x, y;
    MUST(pthread_create(&x, NULL, one, a));
    MUST(pthread_create(&y, NULL, other, b));
    MUST(pthread_join(x, NULL));
    MUST(pthread_join(y, NULL));
}

int main(int argc, char **argv)
{
    char shape[32];
    int local = 0;
    long long copy[2];

    assert(argc > 1);
    snprintf(shape, sizeof shape, "%s", argv[1]);
    fixed = strstr(shape, "-fixed") != NULL;
    if (fixed)
        *strchr(shape, '-') = '\0';
    if (strcmp(shape, "counter") == 0) {
        both(counts, NULL, counts, NULL);
    } else if (strcmp(shape, "locks") == 0) {
        both(counts_under, NULL, counts_under, shape);
    } else if (strcmp(shape, "driver") == 0) {
        both(stops, NULL, uses, NULL);
    } else if (strcmp(shape, "setup") == 0) {
        both(sets_up, NULL, sets_up, NULL);
    } else if (strcmp(shape, "local") == 0) {
        both(adds, &local, adds, &local);
    } else if (strcmp(shape, "copy") == 0) {
        both(copies, NULL, copies, copy);
    } else if (strcmp(shape, "bytes") == 0) {
        both(sets_left, NULL, fixed ? sets_right : sets_left, NULL);
    } else if (strcmp(shape, "semaphore") == 0) {
        /* With one in the semaphore to begin with the post does not come first. */
        MUST(sem_init(&ready, 0, !fixed));
        both(hands_over, NULL, takes_over, NULL);
    } else if (strcmp(shape, "join") == 0) {
        pthread_t t;
        MUST(pthread_create(&t, NULL, counts, NULL));
        if (fixed)
            MUST(pthread_join(t, NULL));
        counter++;
        if (!fixed)
            MUST(pthread_join(t, NULL));
    } else if (strcmp(shape, "process") == 0) {
        int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert(shared != MAP_FAILED);
        pid_t child = fork();
        if (child == 0) {
            shared[1] = 1;
            _exit(0);
        }
        if (!fixed)
            shared[1]++;
        assert(waitpid(child, NULL, 0) == child);
        shared[1]++;
        /* Of memory that is not shared each has its own. */
        counter++;
    } else {
        return 2;
    }
    return 0;
}
