/*
 * A robust mutex that nobody has made consistent.  robust_stuck VARIANT
 *   try       trylock finds it not recoverable and, in glibc, keeps it: the next to lock it waits for ever
 *   lock      lock finds the same and gives it back
 */
#include "t.h"
#include <errno.h>

static pthread_mutex_t mutex;

static void *dies(void *arg)
{
    pthread_mutex_lock(&mutex);
    return arg;
}

int main(int argc, char **argv)
{
    (void)argc;
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &robust);
    pthread_join(go(dies, NULL), NULL);
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    assert(pthread_mutex_unlock(&mutex) == 0);
    if (strcmp(argv[1], "try") == 0) {
        assert(pthread_mutex_trylock(&mutex) == ENOTRECOVERABLE);
        assert(pthread_mutex_trylock(&mutex) == EBUSY);
    }
    assert(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
    assert(pthread_mutex_lock(&mutex) == ENOTRECOVERABLE);
    return 0;
}
