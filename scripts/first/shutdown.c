/* A pool whose workers look at the flag outside of the lock and then wait: the last broadcast comes too early. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_there = PTHREAD_COND_INITIALIZER;
static int jobs, over;

static void *worker(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&lock);
        int ends = over;
        pthread_mutex_unlock(&lock);
        if (ends)
            return NULL;
        pthread_mutex_lock(&lock);
        if (jobs == 0)
            pthread_cond_wait(&work_there, &lock);
        if (jobs > 0)
            jobs--;
        pthread_mutex_unlock(&lock);
    }
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        jobs++;
        pthread_cond_signal(&work_there);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&work_there);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}
