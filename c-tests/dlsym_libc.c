/*
 * libc's functions by addresses that libc itself is asked for: the locks are operations, and what they do to memory is seen, as of those that are
 * called by their names. l: two locks in two orders; n, v: the same by RTLD_NEXT and by version; c: two copies, and a reader in between.
 * ORDERED: one order, and a lock. m: a second libc.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int (*lock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);
static void *(*copy)(void *, const void *, size_t);
static char text[17], seen[17];
static char what;

static void *other(void *unused)
{
    if (what == 'c') {
#ifdef ORDERED
        lock(&first);
#endif
        copy(text, "0123456789abcdef", 16);
        copy(text, "fedcba9876543210", 16);
#ifdef ORDERED
        unlock(&first);
#endif
    } else {
#ifdef ORDERED
        lock(&first);
        lock(&second);
        unlock(&second);
        unlock(&first);
#else
        lock(&second);
        lock(&first);
        unlock(&first);
        unlock(&second);
#endif
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    what = argv[1][0];
    void *libc = what == 'm' ? dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW) : dlopen("libc.so.6", RTLD_NOW);

    lock = dlsym(what == 'n' ? RTLD_NEXT : libc, "pthread_mutex_lock");
    unlock = dlsym(what == 'n' ? RTLD_NEXT : libc, "pthread_mutex_unlock");
    copy = dlsym(libc, "memcpy");
    if (what == 'v') {
        lock = dlvsym(libc, "pthread_mutex_lock", "GLIBC_2.2.5");
        unlock = dlvsym(libc, "pthread_mutex_unlock", "GLIBC_2.2.5");
    }
    assert(lock == pthread_mutex_lock && copy == memcpy);
    pthread_create(&thread, NULL, other, NULL);
    lock(&first);
    if (what == 'c') {
        copy(seen, text, 16);
        assert(seen[0] != '0');
    } else {
        lock(&second);
        unlock(&second);
    }
    unlock(&first);
    pthread_join(thread, NULL);
    return 0;
}
