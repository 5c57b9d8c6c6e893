/* Readers that become writers while they hold the lock for reading, once in ten rounds. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int readers;

static void enter(void)
{
    pthread_mutex_lock(&lock);
    readers++;
    pthread_mutex_unlock(&lock);
}

static void upgrade(void)
{
    pthread_mutex_lock(&lock);
    while (readers > 1)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void leave(void)
{
    pthread_mutex_lock(&lock);
    readers--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *use(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        enter();
        if (i == 9)
            upgrade();
        leave();
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, use, NULL);
    pthread_create(&b, NULL, use, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
