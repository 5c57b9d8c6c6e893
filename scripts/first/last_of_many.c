/* The last of forty updates without a lock is lost if the other thread is in one place of its forty. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int shared, done;

static void *work(void *arg)
{
    (void)arg;
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
    }
    int seen = *(volatile int *)&done;
    *(volatile int *)&done = seen + 1;
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, work, NULL);
    pthread_create(&b, NULL, work, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(done == 2);
}
