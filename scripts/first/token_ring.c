/* A token goes round; one thread passes it on before it has counted itself out. */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

enum { N = 5 };
static sem_t has[N];
static int holders;

static void *pass(void *arg)
{
    int i = (int)(long)arg;
    for (int round = 0; round < 4; round++) {
        sem_wait(&has[i]);
        __atomic_fetch_add(&holders, 1, __ATOMIC_SEQ_CST);
        assert(__atomic_load_n(&holders, __ATOMIC_SEQ_CST) == 1);
        if (i == 3) {
            sem_post(&has[(i + 1) % N]);
            __atomic_fetch_sub(&holders, 1, __ATOMIC_SEQ_CST);
        } else {
            __atomic_fetch_sub(&holders, 1, __ATOMIC_SEQ_CST);
            sem_post(&has[(i + 1) % N]);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        sem_init(&has[i], 0, i == 0);
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, pass, (void *)i);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
}
