/* So many threads as the argument says lock, count and unlock. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    int n = argc > 1 ? atoi(argv[1]) : 2;
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    assert(count == n);
}
