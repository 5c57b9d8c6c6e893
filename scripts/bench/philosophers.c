/*
 * Dining philosophers as threads, four unless THREADS says how many.
 * Without an argument: one meal, to be run under vsrun.  With N: N times fork, in the child the same meal,
 * wait; prints the seconds that took.
 */
#include "bare.h"

#define SEATS THREADS
static pthread_mutex_t fork_at[SEATS] = { [0 ... SEATS - 1] = PTHREAD_MUTEX_INITIALIZER };

static void *dine(void *arg)
{
    int left = (int)(intptr_t)arg, right = (left + 1) % SEATS;

    pthread_mutex_lock(&fork_at[left]);
    pthread_mutex_lock(&fork_at[right]);
    pthread_mutex_unlock(&fork_at[left]);
    pthread_mutex_unlock(&fork_at[right]);
    return NULL;
}

int main(int argc, char **argv)
{
    return bare_main(argc, argv, dine);
}
