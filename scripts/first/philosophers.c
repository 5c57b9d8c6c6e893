/* Seven philosophers who all take the left fork first. */
#include <pthread.h>
#include <semaphore.h>

enum { N = 7 };
static sem_t forks[N];

static void *dine(void *arg)
{
    int i = (int)(long)arg;
    for (int round = 0; round < 2; round++) {
        sem_wait(&forks[i]);
        sem_wait(&forks[(i + 1) % N]);
        sem_post(&forks[(i + 1) % N]);
        sem_post(&forks[i]);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        sem_init(&forks[i], 0, 1);
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, dine, (void *)i);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
}
