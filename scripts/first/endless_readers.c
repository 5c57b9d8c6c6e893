/* Readers and writers that go on for ever; one reader looks without the lock. */
#include <assert.h>
#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int first, second;

__attribute__((noreturn)) static void *write_on(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_rwlock_wrlock(&lock);
        first++;
        second++;
        pthread_rwlock_unlock(&lock);
    }
}

__attribute__((noreturn)) static void *read_on(void *arg)
{
    (void)arg;
    for (;;) {
#ifndef FIXED
        if ((long)arg == 0) {
            int seen = *(volatile int *)&second;
            assert(seen == *(volatile int *)&first);
            continue;
        }
#endif
        pthread_rwlock_rdlock(&lock);
        assert(first == second);
        pthread_rwlock_unlock(&lock);
    }
}

int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, read_on, (void *)i);
    for (long i = 2; i < 4; i++)
        pthread_create(&threads[i], NULL, write_on, NULL);
    pthread_join(threads[0], NULL);
}
