/*
 * Two readers that both want to become the writer.  Buggy: wrlock while holding the read lock, if
 * the other one reads too both wait for ever (and one alone waits for itself).  Fixed: release first.
 */
#include "t.h"

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int fixed, writes;

static void *upgrade(void *unused)
{
    MUST(pthread_rwlock_rdlock(&l));
    if (fixed)
        MUST(pthread_rwlock_unlock(&l));
    MUST(pthread_rwlock_wrlock(&l));
    writes++;
    MUST(pthread_rwlock_unlock(&l));
    if (!fixed)
        MUST(pthread_rwlock_unlock(&l));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    fixed = arg_is(argc, argv, "fixed");
    t1 = go(upgrade, NULL);
    t2 = go(upgrade, NULL);
    join(t1);
    join(t2);
    assert(writes == 2);
    return 0;
}
