/*
 * Dining philosophers; the last one takes the forks in the other order, so nobody starves.
 * Usage: philosophers_ordered [N]
 */
#include "t.h"

#define MAX 16
static pthread_mutex_t fork_at[MAX];
static int seats;

static void *dine(void *arg)
{
    int left = (int)(intptr_t)arg, right = (left + 1) % seats;

    if (left == seats - 1) {
        right = left;
        left = 0;
    }
    MUST(pthread_mutex_lock(&fork_at[left]));
    MUST(pthread_mutex_lock(&fork_at[right]));
    MUST(pthread_mutex_unlock(&fork_at[left]));
    MUST(pthread_mutex_unlock(&fork_at[right]));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[MAX];

    seats = argc > 1 ? atoi(argv[1]) : 2;
    if (seats < 2 || seats > MAX)
        return 2;
    for (int i = 0; i < seats; i++)
        MUST(pthread_mutex_init(&fork_at[i], NULL));
    for (intptr_t i = 0; i < seats; i++)
        t[i] = go(dine, (void *)i);
    for (int i = 0; i < seats; i++)
        join(t[i]);
    return 0;
}
