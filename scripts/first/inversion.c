/* Two threads take two locks in opposite orders, the first at its end, the second at its beginning; between lie ROUNDS uses of a lock that both need. */
#include <pthread.h>

enum { ROUNDS = 300 };
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, common = PTHREAD_MUTEX_INITIALIZER;
static int n;

static void work(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&common);
        n++;
        pthread_mutex_unlock(&common);
    }
}

static void *late(void *arg)
{
    (void)arg;
    work();
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *early(void *arg)
{
    (void)arg;
#ifdef FIXED
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
#else
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
#endif
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    work();
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, late, NULL);
    pthread_create(&two, NULL, early, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}
