/* One thread takes memory away that another one uses: munmap, mremap, mprotect. Nothing orders the two, or, with "fixed", a lock and a flag. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096
#define MUST(call) \
    do \
        if (call) abort(); \
    while (0)

static const char *what;
static bool fixed, gone;
static volatile long *page;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is(const char *name)
{
    return strcmp(what, name) == 0;
}

static void *use(void *unused)
{
    if (fixed) MUST(pthread_mutex_lock(&lock));
    if (!fixed || !gone) {
        if (is("freeze")) page[1] = 8;
        else (void)page[1];
    }
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void take(void)
{
    void *at = (void *)page;
    if (is("unmap")) MUST(munmap(at, PAGE));
    if (is("move")) MUST(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)at + 16 * PAGE) == MAP_FAILED);
    if (is("close")) MUST(mprotect(at, PAGE, PROT_NONE));
    if (is("freeze") || is("read-only")) MUST(mprotect(at, PAGE, PROT_READ));
}

/* Memory with a guard page, as threads have it for their stacks: what one has given back another one gets, or other memory. */
static void *guarded(void *unused)
{
    MUST(pthread_mutex_lock(&lock));
    MUST(pthread_mutex_unlock(&lock));
    char *all = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(all == MAP_FAILED);
    MUST(mprotect(all, PAGE, PROT_NONE));
    all[PAGE] = 1;
    MUST(pthread_mutex_lock(&lock));
    MUST(pthread_mutex_unlock(&lock));
    MUST(all[PAGE] != 1);
    MUST(munmap(all, 3 * PAGE));
    return unused;
}

/* Memory that cannot be read, which one thread takes away while another one makes it readable. */
static void *takes_guarded(void *unused)
{
    MUST(munmap((void *)page, PAGE));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t user;
    if (argc < 2) return 2;
    what = argv[1];
    if (is("guarded")) {
        MUST(pthread_create(&user, NULL, guarded, NULL));
        guarded(NULL);
        MUST(pthread_join(user, NULL));
        return 0;
    }
    if (is("guard")) {
        page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(page == MAP_FAILED);
        MUST(pthread_create(&user, NULL, takes_guarded, NULL));
        (void)mprotect((void *)page, PAGE, PROT_READ);
        MUST(pthread_join(user, NULL));
        return 0;
    }
    fixed = argc > 2;
    page = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 2;
    page[1] = 7;
    MUST(pthread_create(&user, NULL, use, NULL));
    if (fixed) MUST(pthread_mutex_lock(&lock));
    take();
    gone = true;
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    MUST(pthread_join(user, NULL));
    return 0;
}
