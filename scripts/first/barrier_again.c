/* A barrier of two counters that is used again before the last one has left it. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t full = PTHREAD_COND_INITIALIZER;
static int there;
enum { N = 3 };

static void wait_for_all(void)
{
    pthread_mutex_lock(&lock);
    if (++there == N)
        pthread_cond_broadcast(&full);
    while (there < N)
        pthread_cond_wait(&full, &lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    there = 0;
    pthread_mutex_unlock(&lock);
}

static void *work(void *arg)
{
    (void)arg;
    wait_for_all();
    wait_for_all();
    return NULL;
}

int main(void)
{
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
}
