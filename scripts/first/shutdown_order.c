/* A logger is closed under its lock by the main thread, after it has stopped the workers' queue; a worker that is late logs under the queue's lock. */
#include <assert.h>
#include <pthread.h>

enum { JOBS = 200 };
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static int left = JOBS, stopped, lines;

static void say(void)
{
    pthread_mutex_lock(&log_lock);
    lines++;
    pthread_mutex_unlock(&log_lock);
}

static void *worker(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_mutex_lock(&queue);
        if (stopped || left == 0) {
            say();
            pthread_mutex_unlock(&queue);
            return NULL;
        }
        left--;
        pthread_mutex_unlock(&queue);
        say();
    }
}

static void shut_down(void)
{
#ifndef FIXED
    pthread_mutex_lock(&log_lock);
#endif
    pthread_mutex_lock(&queue);
    stopped = 1;
    pthread_mutex_unlock(&queue);
#ifndef FIXED
    pthread_mutex_unlock(&log_lock);
#endif
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < JOBS; i++)
        say();
    shut_down();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}
