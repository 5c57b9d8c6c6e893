/* Eight threads count under one lock, one of them under another. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *arg)
{
    pthread_mutex_t *lock = arg;
    pthread_mutex_lock(lock);
    int seen = *(volatile int *)&count;
    *(volatile int *)&count = seen + 1;
    pthread_mutex_unlock(lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, add, i == 7 ? &two : &one);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert(count == 8);
}
