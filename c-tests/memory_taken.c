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

int main(int argc, char **argv)
{
    pthread_t user;
    if (argc < 2) return 2;
    what = argv[1];
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
