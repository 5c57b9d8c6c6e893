/* THREADS writers of two variables without a lock, and a checker that is to see both or none. */
#include <assert.h>
#include <pthread.h>

#ifndef THREADS
#define THREADS 100
#endif
static int a, b;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void *set(void *arg)
{
    (void)arg;
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    a = 1;
    b = -1;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return NULL;
}

static void *check(void *arg)
{
    (void)arg;
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int seen_a = *(volatile int *)&a, seen_b = *(volatile int *)&b;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    assert((seen_a == 0 && seen_b == 0) || (seen_a == 1 && seen_b == -1));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS + 1];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, set, NULL);
    pthread_create(&threads[THREADS], NULL, check, NULL);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
}
