/* Four threads; a crash only if they come in the order 3, 0, 1, 2. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int order[4], n;

static void *come(void *arg)
{
    MUST(pthread_mutex_lock(&m));
    order[n++] = (int)(intptr_t)arg;
    if (n == 4 && order[0] == 3 && order[1] == 0 && order[2] == 1)
        *(volatile int *)NULL = 1;
    MUST(pthread_mutex_unlock(&m));
    return NULL;
}

int main(void)
{
    pthread_t t[4];

    for (intptr_t i = 0; i < 4; i++)
        t[i] = go(come, (void *)i);
    for (int i = 0; i < 4; i++)
        join(t[i]);
    return 0;
}
