/* Two streams, locked in crossing order (buggy) or in the same (fixed); by flockfile, or (list) by fflush of all streams, which holds
 * the list of them, against fopen by a thread that holds a stream; "apart" closes the file without holding one. */
#include "t.h"

static void both(FILE *first, FILE *second)
{
    flockfile(first);
    flockfile(second);
    funlockfile(second);
    funlockfile(first);
}

static void *one(void *unused)
{
    both(stdout, stderr);
    return unused;
}

static void *other(void *fixed)
{
    if (fixed)
        both(stdout, stderr);
    else
        both(stderr, stdout);
    return NULL;
}

static void *opens(void *apart)
{
    FILE *f;

    if (!apart)
        flockfile(stdout);
    f = fopen("/dev/null", "r");
    if (f == NULL)
        abort();
    MUST(fclose(f));
    if (!apart)
        funlockfile(stdout);
    return NULL;
}

static void *flushes(void *unused)
{
    MUST(fflush(NULL));
    return unused;
}

int main(int argc, char **argv)
{
    int list = arg_is(argc, argv, "list"), apart = arg_is(argc, argv, "apart");
    pthread_t t1 = go(list || apart ? opens : one, apart ? argv : NULL);
    pthread_t t2 = go(list || apart ? flushes : other, arg_is(argc, argv, "fixed") ? argv : NULL);

    join(t1);
    join(t2);
    return 0;
}
