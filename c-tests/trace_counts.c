/* Small programs over atomic memory of which other checkers state how many executions they have under sequential consistency, one for each
 * order of uses of memory that can be told. The first argument names one, the second how many threads there are, or rounds.
 * "counters": threads add to two counters. "load-store": each loads a word and stores to it. "store-twice": each stores to it twice.
 * "writers": each stores to it, one more reads it. "readers": each loads what one more stores. "four-loads": three store, one loads four times.
 * "store-load": each stores to it, then loads it.
 * "opposite": two store to two words, two others load both, in opposite orders.
 * "chain": each makes its element one more than the one before it, another looks for the last that is zero.
 * "fibonacci": two add to each other's words in rounds, a third loads both. "sieve": two threads sieve the numbers up to n.
 * "credits": two take and give back credits in rounds, and work if they had all. "try": two try to take a lock in rounds.
 * "two-words": one that finds the first word as it was writes the second, which others look at ("control flow" of Source-DPOR).
 * "first": each takes a word that nobody has taken. "turns": each makes the word one more if it is its turn. "take-store": each takes the word if
 * nobody has, and stores to it. "once-set": each takes the word if one more has set it. Comparisons that fail are reads here.
 * "interest": Dijkstra's lock with bounded loops. "steal": a Chase-Lev deque, ten operations of its owner and one theft. */
#include "t.h"
#include <stdatomic.h>

static int n;
static atomic_int word, other, third, numbers[32];

static void *counters(void *mine)
{
    (void)mine;
    atomic_fetch_add(&word, 1);
    atomic_fetch_add(&other, 1);
    return NULL;
}

static void *load_store(void *mine)
{
    int found = atomic_load(&word);
    atomic_store(&word, found + 1 + (int)(intptr_t)mine);
    return NULL;
}

static void *store_twice(void *mine)
{
    atomic_store(&word, (int)(intptr_t)mine);
    atomic_store(&word, (int)(intptr_t)mine);
    return NULL;
}

static void *store_load(void *mine)
{
    atomic_store(&word, (int)(intptr_t)mine);
    (void)atomic_load(&word);
    return NULL;
}

/* The last thread reads. */
static void *writers(void *mine)
{
    if ((intptr_t)mine == n)
        (void)atomic_load(&word);
    else
        atomic_store(&word, (int)(intptr_t)mine);
    return NULL;
}

static void *readers(void *mine)
{
    if ((intptr_t)mine == n)
        atomic_store(&word, 42);
    else
        (void)atomic_load(&word);
    return NULL;
}

static void *four_loads(void *mine)
{
    if ((intptr_t)mine < 3) {
        atomic_store(&word, (int)(intptr_t)mine);
        return NULL;
    }
    (void)atomic_load(&word);
    (void)atomic_load(&word);
    (void)atomic_load(&word);
    (void)atomic_load(&word);
    return NULL;
}

static void *opposite(void *mine)
{
    switch ((intptr_t)mine) {
    case 0: atomic_store(&word, 1); break;
    case 1: atomic_store(&other, 1); break;
    case 2: (void)atomic_load(&word); (void)atomic_load(&other); break;
    default: (void)atomic_load(&other); (void)atomic_load(&word);
    }
    return NULL;
}

static void *chain(void *mine)
{
    int at = (int)(intptr_t)mine;
    if (at > 0) {
        atomic_store(&numbers[at], atomic_load(&numbers[at - 1]) + 1);
        return NULL;
    }
    for (at = n; atomic_load(&numbers[at]) != 0; at--) {}
    return NULL;
}

static void *fibonacci(void *mine)
{
    if ((intptr_t)mine == 2) {
        (void)atomic_load(&word);
        (void)atomic_load(&other);
        return NULL;
    }
    atomic_int *first = mine ? &other : &word, *second = mine ? &word : &other;
    for (int i = 0; i < n; i++) {
        int a = atomic_load(first);
        atomic_store(first, a + atomic_load(second));
    }
    return NULL;
}

static void *sieve(void *mine)
{
    (void)mine;
    for (int at = 0; at < n; at++)
        if (atomic_load(&numbers[at]) == 0) {
            atomic_store(&numbers[at], 1);
            for (int multiple = 2 * at + 2; multiple < n; multiple += at + 2)
                atomic_store(&numbers[multiple], 2);
        }
    return NULL;
}

static void work(void *mine)
{
    atomic_store(&other, 1 + (int)(intptr_t)mine);
    assert(atomic_load(&other) == 1 + (int)(intptr_t)mine);
}

static void *credits(void *mine)
{
    for (int i = 0; i < n; i++) {
        if (atomic_fetch_sub(&word, 1000) == 0)
            work(mine);
        atomic_fetch_add(&word, 1000);
    }
    return NULL;
}

static void *try(void *mine)
{
    for (int i = 0; i < n; i++) {
        int is_free = 0;
        if (atomic_compare_exchange_strong(&word, &is_free, 1)) {
            work(mine);
            atomic_store(&word, 0);
        }
    }
    return NULL;
}

static void *two_words(void *mine)
{
    int number = (int)(intptr_t)mine;
    if (number < n)
        (void)atomic_load(&third);
    else if (number < 2 * n)
        atomic_store(&word, 1);
    else if (number == 2 * n && atomic_load(&word) == 0)
        atomic_store(&other, 1);
    else if (number > 2 * n && atomic_load(&other) == 1 && atomic_load(&word) == 0)
        atomic_store(&third, 1);
    return NULL;
}

static void *first(void *mine)
{
    int nobody = 0;
    atomic_compare_exchange_strong(&word, &nobody, 1 + (int)(intptr_t)mine);
    return NULL;
}

static void *turns(void *mine)
{
    int me = (int)(intptr_t)mine;
    atomic_compare_exchange_strong(&word, &me, me + 1);
    return NULL;
}

static void *take_store(void *mine)
{
    first(mine);
    atomic_store(&word, -1);
    return NULL;
}

static void *once_set(void *mine)
{
    int set = 1;
    if ((intptr_t)mine == n)
        atomic_store(&word, 1);
    else
        atomic_compare_exchange_strong(&word, &set, 2);
    return NULL;
}

static void *interest(void *mine)
{
    int me = (int)(intptr_t)mine;
    atomic_int *wants = numbers, *passes = numbers + 2, *turn = numbers + 4;
    atomic_store(&wants[me], 1);
    for (int outer = 0; outer < n; outer++) {
        int has_turn = 0;
        for (int i = 0; i < n && !has_turn; i++) {
            int whose = atomic_load(turn);
            has_turn = whose == me;
            if (!has_turn && atomic_load(&wants[whose]) == 0)
                atomic_store(turn, me);
        }
        if (!has_turn)
            return NULL;
        atomic_store(&passes[me], 1);
        if (atomic_load(&passes[1 - me]) == 0) {
            work(mine);
            atomic_store(&passes[me], 0);
            atomic_store(&wants[me], 0);
            return NULL;
        }
        atomic_store(&passes[me], 0);
    }
    return NULL;
}

/* Items lie in `numbers`; `word` is the bottom, `other` the top. */
static void take(void)
{
    int bottom = atomic_load(&word);
    atomic_store(&word, bottom - 1);
    int top = atomic_load(&other);
    if (bottom - top <= 0) {
        atomic_store(&word, bottom);
        return;
    }
    (void)atomic_load(&numbers[bottom - 1]);
    if (bottom - top == 1) {
        atomic_compare_exchange_strong(&other, &top, top + 1);
        atomic_store(&word, bottom);
    }
}

static void put(int item)
{
    int bottom = atomic_load(&word);
    (void)atomic_load(&other);
    atomic_store(&numbers[bottom], item);
    atomic_store(&word, bottom + 1);
}

static void *steal(void *mine)
{
    if (mine) {
        int top = atomic_load(&other);
        if (atomic_load(&word) - top > 0) {
            (void)atomic_load(&numbers[top]);
            atomic_compare_exchange_strong(&other, &top, top + 1);
        }
        return NULL;
    }
    for (int i = 1; i <= 5; i++)
        put(i);
    for (int i = 0; i < 3; i++)
        take();
    put(6);
    put(7);
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void *(*body)(void *);
        /* Threads: so many for each of n, and so many more. */
        int each, more;
    } all[] = {
        { "counters", counters, 1, 0 }, { "load-store", load_store, 1, 0 }, { "store-twice", store_twice, 1, 0 },
        { "writers", writers, 1, 1 }, { "readers", readers, 1, 1 }, { "four-loads", four_loads, 0, 4 },
        { "store-load", store_load, 1, 0 }, { "opposite", opposite, 0, 4 }, { "chain", chain, 1, 1 },
        { "fibonacci", fibonacci, 0, 3 }, { "sieve", sieve, 0, 2 }, { "credits", credits, 0, 2 }, { "try", try, 0, 2 },
        { "two-words", two_words, 2, 2 }, { "first", first, 1, 0 }, { "turns", turns, 1, 0 }, { "take-store", take_store, 1, 0 }, { "once-set", once_set, 1, 1 },
        { "interest", interest, 0, 2 }, { "steal", steal, 0, 2 },
    };
    pthread_t threads[16];
    n = argc > 2 ? atoi(argv[2]) : 0;
    if (arg_is(argc, argv, "fibonacci"))
        word = other = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (arg_is(argc, argv, all[i].name)) {
            int count = all[i].each * n + all[i].more;
            for (intptr_t t = 0; t < count; t++)
                threads[t] = go(all[i].body, (void *)t);
            for (int t = 0; t < count; t++)
                join(threads[t]);
            return 0;
        }
    abort();
}
