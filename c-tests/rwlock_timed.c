/* A writer with a deadline on a lock that prefers writers: readers are refused while it waits, and let in once it has given up. */
#include "t.h"

static pthread_rwlock_t lock;

static void *writer(void *unused)
{
    struct timespec until;
    (void)unused;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    return (void *)(long)pthread_rwlock_timedwrlock(&lock, &until);
}

static void *reader(void *unused)
{
    (void)unused;
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_rwlockattr_t attr;
    pthread_t t, r;
    void *result;
    int tried = 0;
    pthread_rwlockattr_init(&attr);
    if (!arg_is(argc, argv, "readers")) pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock, &attr);
    pthread_rwlock_rdlock(&lock);
    pthread_create(&t, NULL, writer, NULL);
    if (arg_is(argc, argv, "waits")) {
        /* The reader waits for the writer, which gives up. */
        pthread_create(&r, NULL, reader, NULL);
        pthread_join(r, NULL);
    } else {
        tried = pthread_rwlock_tryrdlock(&lock);
    }
    pthread_join(t, &result);
    assert((long)result == ETIMEDOUT);
    if (arg_is(argc, argv, "fixed")) assert(tried == 0 || tried == EBUSY);
    else assert(tried == 0);
    return 0;
}
