/* Two stages of an update under two locks, THREADS writers and one reader: the reader sees one stage without the other. */
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 100
#endif
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static int data1, data2;

static void *writer(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&one);
    data1 = 1;
#ifdef FIXED
    pthread_mutex_lock(&two);
    data2 = data1 + 1;
    pthread_mutex_unlock(&two);
    pthread_mutex_unlock(&one);
#else
    pthread_mutex_unlock(&one);
    pthread_mutex_lock(&two);
    data2 = data1 + 1;
    pthread_mutex_unlock(&two);
#endif
    return NULL;
}

static void *reader(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&one);
    int t1 = data1;
#ifndef FIXED
    pthread_mutex_unlock(&one);
#endif
    pthread_mutex_lock(&two);
    int t2 = data2;
    pthread_mutex_unlock(&two);
#ifdef FIXED
    pthread_mutex_unlock(&one);
#endif
    assert(t1 == 0 || t2 == t1 + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS + 1];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, writer, NULL);
    pthread_create(&threads[THREADS], NULL, reader, NULL);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
}
