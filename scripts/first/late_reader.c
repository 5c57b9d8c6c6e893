/* A thread reads what another one has set up after forty locked steps, without waiting for it. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int shared, *table;

static void *set_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
    }
    table = &shared;
    return NULL;
}

static void *use(void *arg)
{
    (void)arg;
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&lock);
        shared++;
        pthread_mutex_unlock(&lock);
    }
    assert(table != NULL);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, set_up, NULL);
    pthread_create(&b, NULL, use, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
