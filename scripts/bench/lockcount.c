/*
 * Threads (THREADS, four) that take one lock, count and release it.  Arguments as for philosophers.
 */
#include "bare.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add_one(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    return bare_main(argc, argv, add_one);
}
