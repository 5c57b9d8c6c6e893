/* A failure that lies deeper than the bound on the depth, if there is one: what was not explored must not be called free of bugs. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *unused)
{
    for (int i = 0; i < 2; i++) {
        MUST(pthread_mutex_lock(&m));
        count++;
        MUST(pthread_mutex_unlock(&m));
    }
    return unused;
}

int main(void)
{
    pthread_t t = go(add, NULL);

    add(NULL);
    join(t);
    assert(count != 4);
    return 0;
}
