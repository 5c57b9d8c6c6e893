/* State that libc keeps for all threads: who draws first gets the first random number; exit handlers run in the reverse of the order in which
 * they came. buggy and atexit: two threads in any order; fixed: one is joined before the other begins. */
#include "t.h"

static int drawn[2];
static char order[4];

static void *draws(void *to)
{
    *(int *)to = rand();
    return NULL;
}

static void first(void)
{
    strcat(order, "1");
}

static void second(void)
{
    strcat(order, "2");
}

static void *registers(void *which)
{
    MUST(atexit(*(int *)which ? second : first));
    return NULL;
}

static void looks(void)
{
    assert(strcmp(order, "21") == 0 && "the second came second");
}

int main(int argc, char **argv)
{
    int zero = 0, one = 1;
    int handlers = arg_is(argc, argv, "atexit"), fixed = arg_is(argc, argv, "fixed");

    srand(7);
    int expected = rand();
    srand(7);
    if (handlers)
        MUST(atexit(looks));
    pthread_t t1 = handlers ? go(registers, &zero) : go(draws, &drawn[0]);
    if (fixed)
        join(t1);
    pthread_t t2 = handlers ? go(registers, &one) : go(draws, &drawn[1]);
    if (!fixed)
        join(t1);
    join(t2);
    assert((handlers || drawn[0] == expected) && "the first thread drew first");
    return 0;
}
