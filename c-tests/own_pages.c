/* What a thread does to pages that it alone uses is not recorded; where another thread comes to one later, it must be known all the same. Each shape
 * has a race that is seen only by all of what was done there, and a variant "NAME-fixed" without one; the last two have no race. */
#include "t.h"
#include "../shim/include/vs.h"
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096
#define PAGES 300
#define LARGE (24 << 20)

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;
static struct { int value; char rest[PAGE - sizeof(int)]; } page[PAGES] __attribute__((aligned(PAGE)));
static char *large;
static int fixed;

static void once(pthread_mutex_t *which)
{
    MUST(pthread_mutex_lock(which));
    MUST(pthread_mutex_unlock(which));
}

static void adds(int *value, int locked)
{
    if (locked)
        MUST(pthread_mutex_lock(&m));
    ++*(volatile int *)value;
    if (locked)
        MUST(pthread_mutex_unlock(&m));
}

/* Of two uses the first one alone is in order with the other thread's. */
static void *twice(void *value)
{
    adds(value, 1);
    once(&other);
    adds(value, fixed);
    return NULL;
}

static void *once_locked(void *value)
{
    adds(value, 1);
    return NULL;
}

static void *plainly(void *value)
{
    adds(value, fixed);
    return NULL;
}

/* By the time that the other thread comes to its page, which it does behind an operation, this is done. */
static void *clears(void *unused)
{
    if (fixed)
        MUST(pthread_mutex_lock(&m));
    memset(large, 0, LARGE);
    if (fixed)
        MUST(pthread_mutex_unlock(&m));
    once(&other);
    return unused;
}

static void *later(void *value)
{
    once(&other);
    adds(value, fixed);
    return NULL;
}

/* So many pages that they cannot be told one by one. */
static void *all_pages(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    for (int i = 0; i < PAGES - 1; i++)
        page[i].value++;
    MUST(pthread_mutex_unlock(&m));
    adds(&page[PAGES - 1].value, fixed);
    return unused;
}

static void both(void *(*f)(void *), void *(*g)(void *), void *value)
{
    pthread_t t;
    MUST(pthread_create(&t, NULL, g, value));
    f(value);
    MUST(pthread_join(t, NULL));
}

static void *writes(void *value)
{
    if (fixed)
        MUST(pthread_mutex_lock(&m));
    *(volatile int *)value = 1;
    if (fixed)
        MUST(pthread_mutex_unlock(&m));
    return NULL;
}

/* What a child finds is what the fork has left there, whoever has put it there. */
static void *forks(void *value)
{
    once(&other);
    if (fixed) {
        MUST(pthread_mutex_lock(&m));
        *(int *)value = 1;
    }
    pid_t child = fork();
    if (child == 0)
        _exit(*(volatile int *)value);
    if (fixed)
        MUST(pthread_mutex_unlock(&m));
    int status;
    assert(waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert(WEXITSTATUS(status) == 1);
    return NULL;
}

/* Memory that processes share comes only after the one use, and before that of the other thread. */
static void *maps(void *value)
{
    adds(value, fixed);
    once(&own);
    int *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(shared != MAP_FAILED);
    shared[0] = 1;
    return NULL;
}

/* A page that one thread gives back, and another one gets. */
static void *maps_and_unmaps(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    int *mine = mmap((void *)0x560000000000, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert(mine != MAP_FAILED);
    mine[0] = 1;
    once(&other);
    mine[1] = 2;
    MUST(munmap(mine, PAGE));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

/* What is handed over is used by one thread, then by another one. */
static void *hands_over(void *value)
{
    for (int i = 0; i < 2; i++) {
        MUST(pthread_mutex_lock(&m));
        ++*(int *)value;
        ++*(int *)(large + PAGE * i);
        MUST(pthread_mutex_unlock(&m));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    char shape[32] = "";
    if (argc > 1)
        strncpy(shape, argv[1], sizeof shape - 1);
    char *dash = strstr(shape, "-fixed");
    if (dash) {
        fixed = 1;
        *dash = 0;
    }
    large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(large != MAP_FAILED);
    if (strcmp(shape, "twice") == 0) {
        both(twice, once_locked, &page[0].value);
        assert(page[0].value == 3);
    } else if (strcmp(shape, "wide") == 0) {
        /* A use of very many pages, and a later one of one of them. */
        both(clears, later, large + LARGE / 2);
    } else if (strcmp(shape, "many") == 0) {
        both(all_pages, all_pages, NULL);
        assert(page[PAGES - 1].value == 2);
    } else if (strcmp(shape, "chosen") == 0) {
        /* Another page each time. */
        int chosen = VS_toss(11);
        both(twice, once_locked, &page[chosen].value);
        assert(chosen < 11 || page[chosen].value == 3);
    } else if (strcmp(shape, "fork") == 0) {
        both(forks, writes, &page[2].value);
    } else if (strcmp(shape, "shared") == 0) {
        both(maps, later, &page[3].value);
        assert(page[3].value == 2);
    } else if (strcmp(shape, "mapped") == 0) {
        both(maps_and_unmaps, maps_and_unmaps, NULL);
    } else if (strcmp(shape, "handed") == 0) {
        both(hands_over, hands_over, &page[5].value);
        assert(page[5].value == 4);
    } else {
        return 2;
    }
    return 0;
}
