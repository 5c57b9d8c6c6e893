/* Mistakes with memory that threads share, each with what goes wrong then: "NAME", and "NAME fixed".
 * "counter": two add one. "check": both look whether there is room and take it. "stores": a message and the flag that tells of it, in the wrong order,
 * by plain stores. "locks": one variable under two locks. "driver": it is used while it is stopped. "local": a variable of main's. "torn":
 * sixteen bytes that are written in two halves and read at once. "free": a small block is freed while another thread uses it. "twice": a small
 * block is freed by both. "realloc": a block is moved while another thread reads it. "list": a node is unlinked and freed under a reader. */
#include "t.h"

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static int fixed, counter, room = 1, taken, message, ready, seen;
static int *place;

static void in(pthread_mutex_t *lock)
{
    if (fixed)
        MUST(pthread_mutex_lock(lock));
}

static void out(pthread_mutex_t *lock)
{
    if (fixed)
        MUST(pthread_mutex_unlock(lock));
}

static void *counts(void *unused)
{
    in(&one);
    counter++;
    out(&one);
    return unused;
}

static void counted(void)
{
    assert(counter == 2);
}

static void *checks(void *unused)
{
    in(&one);
    if (room > 0) {
        room--;
        taken++;
    }
    out(&one);
    return unused;
}

static void checked(void)
{
    assert(room == 0 && taken == 1);
}

static void *stores(void *unused)
{
    volatile int *m = &message, *r = &ready;
    if (fixed) {
        *m = 5;
        *r = 1;
    } else {
        *r = 1;
        *m = 5;
    }
    return unused;
}

static void *reads(void *unused)
{
    volatile int *m = &message, *r = &ready;
    if (*r)
        assert(*m == 5);
    return unused;
}

static void *counts_under(void *lock)
{
    if (fixed)
        lock = &one;
    MUST(pthread_mutex_lock(lock));
    counter++;
    MUST(pthread_mutex_unlock(lock));
    return NULL;
}

/* After the Bluetooth driver of Qadeer and Wu (KISS, PLDI 2004). */
static int pending = 1, stopping, stopped;

static void leaves(void)
{
    if (__atomic_sub_fetch(&pending, 1, __ATOMIC_SEQ_CST) == 0)
        __atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
}

static void *uses_driver(void *unused)
{
    /* Whether it stops is asked before it is said that it is in use, and should be asked after. */
    if (!fixed && __atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
        return unused;
    __atomic_add_fetch(&pending, 1, __ATOMIC_SEQ_CST);
    if (!fixed || !__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
        assert(!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST));
    leaves();
    return unused;
}

static void *stops_driver(void *unused)
{
    __atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
    leaves();
    return unused;
}

static void *adds_to(void *local)
{
    in(&one);
    ++*(int *)local;
    out(&one);
    return NULL;
}

static struct { long first, second; } __attribute__((aligned(16))) pair;

static void *writes_pair(void *unused)
{
    in(&one);
    *(volatile long *)&pair.first = 1;
    *(volatile long *)&pair.second = 1;
    out(&one);
    return unused;
}

static void *reads_pair(void *unused)
{
    long found[2];
    in(&one);
    __asm__ volatile("movaps %1, %%xmm0; movups %%xmm0, %0" : "=m"(found) : "m"(pair) : "xmm0");
    out(&one);
    assert(found[0] == found[1]);
    return unused;
}

/* The block belongs to who takes the pointer. */
static void *uses_block(void *unused)
{
    in(&one);
    int *mine = place;
    if (mine)
        seen = *mine;
    out(&one);
    return unused;
}

static void *frees_block(void *unused)
{
    in(&one);
    int *mine = place;
    if (mine) {
        place = NULL;
        free(mine);
    }
    out(&one);
    return unused;
}

static void *moves_block(void *unused)
{
    in(&one);
    place = realloc(place, 4096);
    out(&one);
    return unused;
}

static struct node { struct node *next; int value; } *list;

static void *walks(void *unused)
{
    in(&one);
    for (struct node *node = list; node; node = node->next)
        seen += node->value;
    out(&one);
    return unused;
}

static void *unlinks(void *unused)
{
    in(&one);
    struct node *node = list->next;
    list->next = node->next;
    out(&one);
    free(node);
    return unused;
}

static void right(void) {}

static const struct { const char *name; void *(*first)(void *), *(*second)(void *); void (*then)(void); } ALL[] = {
    { "counter", counts, counts, counted },       { "check", checks, checks, checked },
    { "stores", stores, reads, right },           { "locks", counts_under, counts_under, counted },
    { "driver", uses_driver, stops_driver, right }, { "local", adds_to, adds_to, right },
    { "torn", writes_pair, reads_pair, right },   { "free", uses_block, frees_block, right },
    { "twice", frees_block, frees_block, right }, { "realloc", uses_block, moves_block, right },
    { "list", walks, unlinks, right },
};

int main(int argc, char **argv)
{
    int at = 0, local = 0;
    MUST(argc < 2);
    fixed = argc > 2;
    while (strcmp(ALL[at].name, argv[1]))
        at++;
    int is_local = ALL[at].first == adds_to, locks = ALL[at].first == counts_under;
    place = malloc(sizeof *place);
    *place = 7;
    for (int n = 0; n < 2; n++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){ list, 1 };
        list = node;
    }
    pthread_t a = go(ALL[at].first, is_local ? (void *)&local : locks ? (void *)&one : NULL);
    pthread_t b = go(ALL[at].second, is_local ? (void *)&local : locks ? (void *)&other : NULL);
    join(a);
    join(b);
    ALL[at].then();
    assert(!is_local || local == 2);
    return 0;
}
