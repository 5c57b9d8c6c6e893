/* Blocks of the heap that threads free, use and get again, with memory watched. "read": a thread reads a block that another one frees, which
 * nothing orders; "realloc": the same where it gets another place; "write": a thread writes to it. "reuse": what one thread frees another
 * one gets, and nothing is wrong with it. "twice": two threads free the same block; the others: one thread uses what it has freed; "late": when it
 * has freed 300 more. */
#include "t.h"
#include <fcntl.h>
#include <malloc.h>

struct block {
    long value, other;
    char rest[2000];
};

static struct block *block;
static int seen = 7, in_order;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *reads(void *unused)
{
    if (in_order) MUST(pthread_mutex_lock(&lock));
    struct block *mine = block;
    if (mine) seen = mine->value;
    if (in_order) MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void *frees_it(void *unused)
{
    struct block *mine = block;
    block = NULL;
    free(mine);
    return unused;
}

static void *idle(void *unused)
{
    return unused;
}

/* A thread uses by different means what it has freed; there is another thread. */
static void alone(int argc, char **argv)
{
    char *text = malloc(40), copy[40], *volatile freed = text;
    pthread_t t = go(idle, NULL);
    memset(text, 0, 40);
    free(text);
    if (arg_is(argc, argv, "own")) freed[3] = 1;
    if (arg_is(argc, argv, "memcpy")) memcpy(copy, freed, 40);
    if (arg_is(argc, argv, "print")) snprintf(copy, sizeof copy, "%s", freed);
    if (arg_is(argc, argv, "write-call")) MUST(write(1, freed, 4) != 4);
    if (arg_is(argc, argv, "read-call")) MUST(read(open("/dev/zero", O_RDONLY), freed, 4) != 4);
    if (arg_is(argc, argv, "double")) free(freed);
    if (arg_is(argc, argv, "grow")) freed = realloc(freed, 80);
    if (arg_is(argc, argv, "late")) {
        for (int n = 0; n < 300; n++)
            free(memset(malloc(200), n, 200));
        memcpy(copy, freed, 8);
    }
    /* What is freed long after goes back to the allocator, which gives it out again. */
    for (int n = 0; n < 1000; n++) {
        char *other = malloc(40);
        memset(other, n, 40);
        free(other);
    }
    char *large = malloc(1000000);
    memset(large, 1, 1000000);
    free(large);
    join(t);
    exit(0);
}

static void *writes(void *unused)
{
    block->value = 8;
    return unused;
}

static void *uses(void *unused)
{
    for (int n = 0; n < 2; n++) {
        struct block *own = malloc(sizeof *own);
        memset(own, n, sizeof *own);
        assert(own->rest[3] == n);
        own = realloc(own, 2 * sizeof *own);
        assert(own->rest[3] == n);
        free(own);
        char *text = strdup("some text");
        text[0] = 'S';
        free(text);
    }
    return unused;
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "twice")) {
        block = malloc(sizeof *block);
        pthread_t one = go(frees_it, NULL), two = go(frees_it, NULL);
        join(one), join(two);
        return 0;
    }
    static const char *const by_one[] = {"own", "memcpy", "print", "write-call", "read-call", "double", "grow", "much", "late"};
    for (unsigned n = 0; n < sizeof by_one / sizeof by_one[0]; n++)
        if (arg_is(argc, argv, by_one[n])) alone(argc, argv);
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_PERTURB, 0x55);
    if (arg_is(argc, argv, "reuse")) {
        pthread_t one = go(uses, NULL), two = go(uses, NULL);
        uses(NULL);
        join(one), join(two);
        return 0;
    }
    in_order = arg_is(argc, argv, "fixed");
    block = malloc(sizeof *block);
    block->value = 7;
    char *fence = malloc(100);
    pthread_t t = go(arg_is(argc, argv, "write") ? writes : reads, NULL);
    if (arg_is(argc, argv, "joined")) join(t);
    if (in_order) MUST(pthread_mutex_lock(&lock));
    struct block *mine = block;
    if (in_order) block = NULL;
    if (arg_is(argc, argv, "realloc"))
        mine = realloc(mine, 100 * sizeof *mine);
    else
        free(mine);
    if (in_order) MUST(pthread_mutex_unlock(&lock));
    if (arg_is(argc, argv, "write")) {
        mine = malloc(sizeof *mine);
        mine->value = 9;
    }
    if (!arg_is(argc, argv, "joined")) join(t);
    if (arg_is(argc, argv, "write")) assert(mine->value == 9);
    assert(seen == 7);
    free(fence);
    return 0;
}
