/* Lazy setup in which the flag is set before the value. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int ready, value;

static void *use(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        if (!ready) {
            pthread_mutex_lock(&lock);
            if (!ready) {
                ready = 1;
                value = 42;
            }
            pthread_mutex_unlock(&lock);
        }
        assert(value == 42);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
