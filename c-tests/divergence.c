/* A loop without any visible operation never ends if the other thread comes second. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int left = 4;

static void *counts_down(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    while (left != 0)
        left -= 2;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    int step = arg_is(argc, argv, "fixed") ? 2 : 0;
    pthread_t t = go(counts_down, NULL);

    MUST(pthread_mutex_lock(&m));
    if (left == 0)
        step = 2;
    while (left != 0)
        left -= step;
    MUST(pthread_mutex_unlock(&m));
    join(t);
    return 0;
}
