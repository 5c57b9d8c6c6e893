// Two threads lock two accounts in different order, in a function that is inlined; with an argument, they count without a lock.
#include <pthread.h>

struct account { pthread_mutex_t lock; long cents; };
struct account bank[2] = { { PTHREAD_MUTEX_INITIALIZER, 100 }, { PTHREAD_MUTEX_INITIALIZER, 100 } };
int audits;

static inline __attribute__((always_inline)) void transfer(struct account *from, struct account *to, long cents)
{
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->cents -= cents;
    to->cents += cents;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *worker(void *arg)
{
    long me = (long)arg;
    transfer(&bank[me], &bank[1 - me], 5);
    return 0;
}

static void *auditor(void *arg)
{
    audits++;
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], 0, argc > 1 ? auditor : worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
