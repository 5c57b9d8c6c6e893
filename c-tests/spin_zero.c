/* A spin lock that nobody has initialized: on x86 zeros are a locked one.  What is allowed to go on as glibc does finds it locked. */
#include "t.h"

static pthread_spinlock_t lock;

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "fixed")) MUST(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE));
    if (arg_is(argc, argv, "unlocked")) MUST(pthread_spin_unlock(&lock));
    if (arg_is(argc, argv, "busy")) assert(pthread_spin_trylock(&lock) == EBUSY);
    else if (arg_is(argc, argv, "try")) assert(pthread_spin_trylock(&lock) == 0);
    else MUST(pthread_spin_lock(&lock));
    if (!arg_is(argc, argv, "fixed")) return 0;
    assert(pthread_spin_trylock(&lock) == EBUSY);
    MUST(pthread_spin_unlock(&lock));
    /* Memory that was something else. */
    memset((void *)&lock, 0, sizeof lock);
    MUST(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE));
    MUST(pthread_spin_trylock(&lock));
    return 0;
}
