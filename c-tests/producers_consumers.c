// Producers and consumers of one item each over a buffer of one place, a mutex and two condition variables.
// Arguments: producers, consumers. If there are more consumers than producers, or more than one producer too many,
// somebody waits for ever.
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int items;

static void *produce(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&m);
    while (items == 1)
        pthread_cond_wait(&not_full, &m);
    items++;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&m);
    return 0;
}

static void *consume(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&m);
    while (items == 0)
        pthread_cond_wait(&not_empty, &m);
    items--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&m);
    return 0;
}

int main(int argc, char **argv)
{
    int producers = argc > 1 ? atoi(argv[1]) : 1, consumers = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t t[16];
    for (int i = 0; i < producers + consumers; i++)
        pthread_create(&t[i], 0, i < producers ? produce : consume, 0);
    for (int i = 0; i < producers + consumers; i++)
        pthread_join(t[i], 0);
    return 0;
}
