/* A detached thread reads through a pointer that the main thread clears: at once (buggy) or when told that it may (fixed). */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t finished;
static int value = 7;
static int *volatile pointer = &value;

static void *reads(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    *pointer += 1;
    MUST(pthread_mutex_unlock(&m));
    MUST(sem_post(&finished));
    return unused;
}

int main(int argc, char **argv)
{
    int fixed = arg_is(argc, argv, "fixed");
    pthread_t t;

    MUST(sem_init(&finished, 0, 0));
    t = go(reads, NULL);
    MUST(pthread_detach(t));
    if (fixed)
        MUST(sem_wait(&finished));
    MUST(pthread_mutex_lock(&m));
    pointer = NULL;
    MUST(pthread_mutex_unlock(&m));
    if (!fixed)
        MUST(sem_wait(&finished));
    return 0;
}
