/* Blocks of the heap that threads free, use and get again, with memory watched. "read": a thread reads a block that another one frees, which
 * nothing orders; "realloc": the same where it gets another place; "write": a thread writes to it. "reuse": what one thread frees another
 * one gets, and nothing is wrong with it. */
#include "t.h"
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
