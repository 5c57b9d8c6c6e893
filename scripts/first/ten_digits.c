/* Two threads count to ten; it fails if one is done before the other begins. */
#include <assert.h>
#include <pthread.h>

enum { N = 10 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int a, b;

static void *ahead(void *arg)
{
    (void)arg;
    for (int i = 0; i < N; i++) {
        pthread_mutex_lock(&lock);
        a++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *behind(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    assert(a < N);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < N; i++) {
        pthread_mutex_lock(&lock);
        b++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, ahead, NULL);
    pthread_create(&two, NULL, behind, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}
