/* pthread_exit in threads and in the main thread, with thread-specific data whose destructor must run before the end of the process. */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static int destroyed, fixed;

static void destroy(void *unused)
{
    (void)unused;
    MUST(pthread_mutex_lock(&m));
    destroyed++;
    MUST(pthread_mutex_unlock(&m));
}

static void *ends(void *unused)
{
    MUST(pthread_setspecific(key, &key));
    if (fixed)
        pthread_exit(NULL);
    MUST(pthread_mutex_lock(&m));
    return unused; /* with the mutex, which the destructor wants */
}

static void check(void)
{
    assert(destroyed == 2);
}

int main(int argc, char **argv)
{
    fixed = arg_is(argc, argv, "fixed");
    MUST(atexit(check));
    MUST(pthread_key_create(&key, destroy));
    go(ends, NULL);
    go(ends, NULL);
    pthread_exit(NULL);
}
