/* Two writers and a reader of one rwlock must exclude each other, whatever the order; nobody gets EDEADLK.  No bug. */
#include "t.h"
#include <sched.h>

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int inside, written;

static void *writer(void *unused)
{
    MUST(pthread_rwlock_wrlock(&l));
    assert(inside++ == 0);
    sched_yield();
    assert(--inside == 0);
    written++;
    MUST(pthread_rwlock_unlock(&l));
    return unused;
}

int main(void)
{
    pthread_t t1 = go(writer, NULL), t2 = go(writer, NULL);

    MUST(pthread_rwlock_rdlock(&l));
    assert(inside == 0);
    MUST(pthread_rwlock_unlock(&l));
    join(t1);
    join(t2);
    assert(written == 2);
    return 0;
}
