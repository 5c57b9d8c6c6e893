/* Memory that threads use without an order: each access is a place to switch (--race explore).  "counter": two threads add one; "atomic":
 * with a locked instruction; "test": check, then act; "flag": data is handed over by a flag that the other one waits for, "early": the flag
 * comes first; "tas" and "ticket": spin locks made of atomic instructions; "dekker": each stores and looks at the other's. */
#include "t.h"

static int counter, data, flag, lock, next, serving, x, y, r1, r2;

static void *counts(void *unused) { counter++; return unused; }
static void *adds(void *unused) { __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST); return unused; }

static void *tests(void *unused)
{
    if (__atomic_load_n(&counter, __ATOMIC_RELAXED) == 0)
        __atomic_fetch_add(&counter, 2, __ATOMIC_SEQ_CST);
    return unused;
}

static void *hands(void *unused)
{
    data = 5;
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *hands_early(void *unused)
{
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    data = 5;
    return unused;
}

static void *takes(void *unused)
{
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) {}
    assert(data == 5);
    return unused;
}

static void *tas(void *unused)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
    counter++;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    return unused;
}

static void *ticket(void *unused)
{
    int mine = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&serving, __ATOMIC_ACQUIRE) != mine) {}
    counter++;
    __atomic_store_n(&serving, mine + 1, __ATOMIC_RELEASE);
    return unused;
}

static void *left(void *unused)
{
    __atomic_store_n(&x, 1, __ATOMIC_RELAXED);
    r1 = __atomic_load_n(&y, __ATOMIC_RELAXED);
    return unused;
}

static void *right(void *unused)
{
    __atomic_store_n(&y, 1, __ATOMIC_RELAXED);
    r2 = __atomic_load_n(&x, __ATOMIC_RELAXED);
    return unused;
}

static int both(void) { return counter == 2; }
static int any(void) { return r1 || r2; }
static int yes(void) { return 1; }

static const struct { const char *name; void *(*one)(void *), *(*two)(void *); int (*holds)(void); } ALL[] = {
    { "counter", counts, counts, both }, { "atomic", adds, adds, both },   { "test", tests, tests, both },
    { "flag", takes, hands, yes },       { "early", takes, hands_early, yes },
    { "tas", tas, tas, both },           { "ticket", ticket, ticket, both }, { "dekker", left, right, any },
};

int main(int argc, char **argv)
{
    pthread_t a, b;
    int at = 0;
    MUST(argc != 2);
    while (strcmp(ALL[at].name, argv[1]))
        at++;
    MUST(pthread_create(&a, NULL, ALL[at].one, NULL));
    MUST(pthread_create(&b, NULL, ALL[at].two, NULL));
    MUST(pthread_join(a, NULL));
    MUST(pthread_join(b, NULL));
    assert(ALL[at].holds());
    return 0;
}
