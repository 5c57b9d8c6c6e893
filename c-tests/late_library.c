/* A library that comes while the program runs is watched like what was there from the start: its code uses a variable of its own, one of the program's, a
 * block of the heap, and functions of libc, without a lock (`buggy`) or under one (`fixed`). By argument main opens it before there are threads, a thread
 * does beside others, each thread for itself, a child; it is closed and opened again; it calls back into the program; another library
 * needs it. A constructor of the library runs before anybody has a handle. */
#include "t.h"
#include <dlfcn.h>

#ifdef LIBRARY

static int counter, begun;
#ifdef RELOCATED
__asm__(".text; .quad stdout; .previous");
#endif
static char text[8];
static volatile size_t much = sizeof text;

__attribute__((constructor)) static void begins(void)
{
    begun++;
}

int once_begun(void)
{
    return begun;
}

int bump(int *more)
{
    ++*more;
    return ++counter;
}

int count(void)
{
    return counter;
}

#ifdef DEFINES
/* Of the name of a function of libc, which nobody but the library itself calls by it. */
__attribute__((noinline)) void *memcpy(void *to, const void *from, size_t n)
{
    char *t = to;
    for (size_t i = 0; i < n; i++) ((volatile char *)t)[i] = ((const char *)from)[i];
    return to;
}
#endif

/* By a function of libc. */
void copy(const char *from)
{
    memcpy(text, from, much);
}

int is_whole(void)
{
    char a[8];
    memcpy(a, text, sizeof a);
    return memcmp(a, "aaaaaaa", 8) == 0 || memcmp(a, "bbbbbbb", 8) == 0;
}

/* A time that is read by a function which the library of vsrun stands for. */
int waits(sem_t *sem, struct timespec *until)
{
    return sem_timedwait(sem, until);
}

void calls(void (*back)(void))
{
    back();
}

#else

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fixed, more, again, own;
static char path[4096];
static int (*bump)(int *), (*count)(void), (*once_begun)(void);
static void (*calls)(void (*)(void));
static int (*waits)(sem_t *, struct timespec *);
static struct timespec until = {1, 0};
static sem_t sem;

static void *opened(void)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) puts(dlerror()), abort();
    bump = (int (*)(int *))dlsym(library, "bump");
    count = (int (*)(void))dlsym(library, "count");
    once_begun = (int (*)(void))dlsym(library, "once_begun");
    calls = (void (*)(void (*)(void)))dlsym(library, "calls");
    waits = (int (*)(sem_t *, struct timespec *))dlsym(library, "waits");
    assert(bump && count && calls && waits && once_begun() == 1);
    return library;
}

static void *bumps(void *unused)
{
    if (own) {
        MUST(pthread_mutex_lock(&lock));
        opened();
        MUST(pthread_mutex_unlock(&lock));
    }
    if (fixed) MUST(pthread_mutex_lock(&lock));
    bump(&more);
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void *opens(void *unused)
{
    void *library = opened();
    if (again) {
        MUST(dlclose(library));
        opened();
    }
    return unused;
}

static void both(void)
{
    pthread_t one = go(bumps, NULL), two = go(bumps, NULL);
    join(one), join(two);
    assert(count() == 2 && more == 2);
}

static void back(void)
{
    if (fixed) MUST(pthread_mutex_lock(&lock));
    more++;
    if (fixed) MUST(pthread_mutex_unlock(&lock));
}

static void *calls_back(void *unused)
{
    calls(back);
    return unused;
}

static volatile size_t size = 8;
static char mine[8];

static void *copies(void *unused)
{
    memcpy(mine, fixed ? "aaaaaaa" : "bbbbbbb", size);
    return unused;
}

static void (*copy)(const char *);
static int (*is_whole)(void);

static void *copies_there(void *text)
{
    if (fixed) MUST(pthread_mutex_lock(&lock));
    copy(text);
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    return NULL;
}

static void *lasts(void *unused)
{
    if (fixed) MUST(pthread_mutex_lock(&lock));
    until.tv_sec = 2;
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    return unused;
}

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    snprintf(path, sizeof path, "%s.so", argv[0]);
    if (arg_is(argc, argv, "main")) opens(NULL);
    if (arg_is(argc, argv, "again")) again = 1, opens(NULL);
    if (arg_is(argc, argv, "thread")) join(go(opens, NULL));
    if (arg_is(argc, argv, "each")) own = 1;
    if (arg_is(argc, argv, "child")) {
        pid_t child = fork();
        if (child == 0) opens(NULL), both(), _exit(0);
        int status;
        assert(waitpid(child, &status, 0) == child);
        assert(status == 0);
        return 0;
    }
    if (arg_is(argc, argv, "back")) {
        opens(NULL);
        pthread_t one = go(calls_back, NULL), two = go(calls_back, NULL);
        join(one), join(two);
        assert(more == 2);
        return 0;
    }
    if (arg_is(argc, argv, "own-copies")) {
        opens(NULL);
        pthread_t one = go(copies, NULL), two = go(copies, NULL);
        join(one), join(two);
        return mine[0] != 'b';
    }
    if (arg_is(argc, argv, "copies")) {
        void *library = opened();
        copy = (void (*)(const char *))dlsym(library, "copy");
        is_whole = (int (*)(void))dlsym(library, "is_whole");
        pthread_t one = go(copies_there, "aaaaaaa"), two = go(copies_there, "bbbbbbb");
        join(one), join(two);
        return !is_whole();
    }
    if (arg_is(argc, argv, "timed")) {
        opens(NULL);
        MUST(sem_init(&sem, 0, 1));
        pthread_t other = go(lasts, NULL);
        if (fixed) MUST(pthread_mutex_lock(&lock));
        MUST(waits(&sem, &until));
        if (fixed) MUST(pthread_mutex_unlock(&lock));
        join(other);
        return 0;
    }
    both();
    return 0;
}
#endif
