/*
 * Transfers between two accounts, each locking the one it takes from first (fixed: in the order of the accounts). A
 * search that switches only where a lock is released never sees both threads with one lock each.
 */
#include "t.h"

static struct account {
    pthread_mutex_t lock;
    int balance;
} accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 10}, {PTHREAD_MUTEX_INITIALIZER, 10}};

static int ordered;

static void *transfer(void *from)
{
    struct account *source = from, *target = &accounts[source == &accounts[0]];
    struct account *first = ordered ? &accounts[0] : source, *second = first == source ? target : source;

    MUST(pthread_mutex_lock(&first->lock));
    MUST(pthread_mutex_lock(&second->lock));
    source->balance -= 5;
    target->balance += 5;
    MUST(pthread_mutex_unlock(&second->lock));
    MUST(pthread_mutex_unlock(&first->lock));
    return NULL;
}

int main(int argc, char **argv)
{
    ordered = arg_is(argc, argv, "fixed");
    pthread_t t1 = go(transfer, &accounts[0]);
    pthread_t t2 = go(transfer, &accounts[1]);

    join(t1);
    join(t2);
    assert(accounts[0].balance == 10 && accounts[1].balance == 10);
    return 0;
}
