/* A reference count that is read after it was taken down: two threads both free. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count = 4, freed;

static void *release(void *arg)
{
    (void)arg;
    for (int i = 0; i < 6; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    count--;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    int last = count == 0;
    pthread_mutex_unlock(&lock);
    if (last) {
        pthread_mutex_lock(&lock);
        freed++;
        assert(freed == 1);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, release, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
