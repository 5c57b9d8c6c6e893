/* N threads; each takes the one lock, counts, and releases it.  Usage: lockcount [N] */
#include "t.h"

#define MAX 64
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *add_one(void *unused)
{
    (void)unused;
    MUST(pthread_mutex_lock(&lock));
    count++;
    MUST(pthread_mutex_unlock(&lock));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[MAX];
    int n = argc > 1 ? atoi(argv[1]) : 2;

    if (n < 1 || n > MAX)
        return 2;
    for (int i = 0; i < n; i++)
        t[i] = go(add_one, NULL);
    for (int i = 0; i < n; i++)
        join(t[i]);
    assert(count == n);
    printf("%d\n", count);
    return 0;
}
