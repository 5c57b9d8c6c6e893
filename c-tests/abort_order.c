/* A thread calls abort() (argument abort), fails an assert() (assert) or a VS_assert() (vs) if it comes second; none: it never does. */
#include "t.h"
#include "../shim/include/vs.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int turns;
static const char *how;

static void *second(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    if (strcmp(how, "assert") == 0)
        assert(turns == 0);
    else if (strcmp(how, "vs") == 0)
        VS_assert(turns == 0);
    else if (strcmp(how, "abort") == 0 && turns != 0)
        abort();
    turns++;
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;

    how = argc > 1 ? argv[1] : "none";
    t = go(second, NULL);
    MUST(pthread_mutex_lock(&m));
    turns++;
    MUST(pthread_mutex_unlock(&m));
    join(t);
    return 0;
}
