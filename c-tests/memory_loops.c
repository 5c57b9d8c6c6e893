/* Loops that wait for memory (--race explore), as compilers leave them without optimization. "levels": two threads wait for two words, one
 * of which is read in a function of its own; what is written comes and goes. "clock" and "own": the loop does something in each round
 * that is no visible operation, it reads the clock, or takes a lock that nobody else has. "processes": the word is shared between
 * processes. "copied": what is waited for is written by memcpy. "circle": the loop is back where it was after five rounds only; in "stuck"
 * it is after forty, which is more than are explored one by one, and nobody writes what it waits for. "seldom": of twenty rounds one looks at a second word; the
 * loop is back where it was when it last was explored round by round, and has not looked there since, but in the rounds that were made in one step. */
#include "t.h"

#pragma GCC optimize("O0")

static int x, y, z;
static long words[4];
static volatile int length = 32;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

static int look(int *word)
{
    int left[6], found = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    (void)left;
    return found;
}

static void *levels(void *unused)
{
    while (look(&x) == 0 && __atomic_load_n(&y, __ATOMIC_SEQ_CST) == 0) {}
    __atomic_store_n(&z, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *comes_and_goes(void *unused)
{
    __atomic_store_n(&x, 2, __ATOMIC_SEQ_CST);
    __atomic_store_n(&x, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&z, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&y, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *reads_the_clock(void *unused)
{
    struct timespec now;
    while (!look(&x))
        clock_gettime(CLOCK_MONOTONIC, &now);
    return unused;
}

static void *takes_a_lock(void *unused)
{
    while (!look(&x)) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    return unused;
}

static void *writes(void *unused)
{
    __atomic_store_n(&x, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *awaits_copy(void *unused)
{
    while (__atomic_load_n(&words[2], __ATOMIC_SEQ_CST) == 0) {}
    return unused;
}

static void circle(int length)
{
    int at = 0;
    while (__atomic_load_n(&y, __ATOMIC_SEQ_CST) != 7 + (at == length))
        at = (at + 1) % length;
}

static void *goes_in_a_circle(void *unused)
{
    circle(5);
    return unused;
}

static void *goes_far(void *unused)
{
    circle(40);
    return unused;
}

static void *ends_the_circle(void *unused)
{
    __atomic_store_n(&y, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&y, 7, __ATOMIC_SEQ_CST);
    return unused;
}

static void *looks_seldom(void *unused)
{
    for (int at = 0; !__atomic_load_n(&x, __ATOMIC_SEQ_CST); at = (at + 1) % 20)
        if (at == 10 && __atomic_load_n(&y, __ATOMIC_SEQ_CST))
            break;
    return unused;
}

static void *ends_it(void *unused)
{
    __atomic_store_n(&y, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *sets_nothing(void *unused)
{
    __atomic_store_n(&x, 0, __ATOMIC_SEQ_CST);
    return unused;
}

static void *does_not(void *unused)
{
    __atomic_store_n(&y, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *copies(void *unused)
{
    static const long ONES[4] = { 1, 1, 1, 1 };
    memcpy(words, ONES, length);
    return unused;
}

static void two_processes(void)
{
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status;
    pid_t child = fork();
    assert(shared != MAP_FAILED && child >= 0);
    if (child == 0) {
        shared[1] = 7;
        __atomic_store_n(&shared[0], 1, __ATOMIC_SEQ_CST);
        _exit(0);
    }
    while (!__atomic_load_n(&shared[0], __ATOMIC_SEQ_CST)) {}
    assert(shared[1] == 7);
    assert(waitpid(child, &status, 0) == child && status == 0);
}

static const struct { const char *name; void *(*one)(void *), *(*two)(void *), *(*three)(void *); } ALL[] = {
    { "levels", levels, comes_and_goes, levels }, { "clock", reads_the_clock, writes, NULL },
    { "own", takes_a_lock, writes, NULL },        { "copied", awaits_copy, copies, NULL },
    { "seldom", looks_seldom, ends_it, sets_nothing },
    { "circle", goes_in_a_circle, ends_the_circle, NULL }, { "stuck", goes_far, does_not, NULL },
};

int main(int argc, char **argv)
{
    pthread_t threads[3];
    int at = 0, n;
    MUST(argc != 2);
    if (!strcmp(argv[1], "processes")) {
        two_processes();
        return 0;
    }
    while (strcmp(ALL[at].name, argv[1]))
        at++;
    void *(*code[3])(void *) = { ALL[at].one, ALL[at].two, ALL[at].three };
    for (n = 0; n < 3 && code[n]; n++)
        MUST(pthread_create(&threads[n], NULL, code[n], NULL));
    while (n--)
        MUST(pthread_join(threads[n], NULL));
    return 0;
}
