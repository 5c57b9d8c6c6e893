/* A null pointer is dereferenced only if the thread that clears it comes first. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int value, *volatile pointer = &value;

static void *use(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    *pointer = 1;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(void)
{
    pthread_t t = go(use, NULL);

    MUST(pthread_mutex_lock(&m));
    pointer = NULL;
    MUST(pthread_mutex_unlock(&m));
    join(t);
    return 0;
}
