/* A key of thread-specific data is deleted beside the end of a thread: whether its destructor runs is not explored, and said.  Fixed: the
 * thread is joined before. */
#include "t.h"

static pthread_key_t key;
static int destroyed;

static void destroy(void *unused)
{
    (void)unused;
    destroyed++;
}

static void *sets(void *unused)
{
    MUST(pthread_setspecific(key, &destroyed));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;
    MUST(pthread_key_create(&key, destroy));
    t = go(sets, NULL);
    if (!arg_is(argc, argv, "fixed")) {
        MUST(pthread_key_delete(key));
        join(t);
        return 0;
    }
    join(t);
    MUST(pthread_key_delete(key));
    assert(destroyed == 1);
    return 0;
}
