/* Threads created and joined one after the other: libc gives them the same pthread_t.  No bug. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    count++;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_t t = go(add, NULL);

        add(NULL);
        join(t);
    }
    assert(count == 6);
    return 0;
}
