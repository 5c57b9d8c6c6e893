/* A consumer that looks at the queue, then locks, then waits: the signal between is lost. */
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER;
static _Atomic int items;

static void *produce(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        items++;
        pthread_cond_signal(&there);
    }
    return NULL;
}

static void *consume(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        if (items == 0) {
            pthread_mutex_lock(&lock);
            pthread_cond_wait(&there, &lock);
            pthread_mutex_unlock(&lock);
        }
        items--;
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, consume, NULL);
    pthread_create(&b, NULL, produce, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
