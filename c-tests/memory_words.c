/* Memory that threads use without an order: each access is a place to switch (--race explore).  "counter": two threads add one; "atomic":
 * with a locked instruction; "test": check, then act; "flag": data is handed over by a flag that the other one waits for, "early": the flag
 * comes first; "tas" and "ticket": spin locks made of atomic instructions; "dekker": each stores and looks at the other's; "peterson": his
 * lock, "open": without the turn; "gives-up": looks a few times only, "locally": counted in thread-local memory; "stuck": waits for what
 * nobody writes; "back": what is waited for comes and goes, and the other word stays. */
#include "t.h"

static int counter, data, flag, lock, next, serving, x, y, r1, r2;
static int wants[2], turn, within, who;
static __thread int rounds;

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

static void *peterson(void *unused)
{
    int me = __atomic_fetch_add(&who, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&wants[me], 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&turn, 1 - me, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&wants[1 - me], __ATOMIC_SEQ_CST) && __atomic_load_n(&turn, __ATOMIC_SEQ_CST) != me) {}
    assert(++within == 1);
    counter++;
    within--;
    __atomic_store_n(&wants[me], 0, __ATOMIC_SEQ_CST);
    return unused;
}

static void *open_door(void *unused)
{
    int me = __atomic_fetch_add(&who, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&wants[1 - me], __ATOMIC_SEQ_CST)) {}
    __atomic_store_n(&wants[me], 1, __ATOMIC_SEQ_CST);
    counter++;
    __atomic_store_n(&wants[me], 0, __ATOMIC_SEQ_CST);
    return unused;
}

static void *gives_up(void *unused)
{
    for (int i = 0; i < 4 && !__atomic_load_n(&flag, __ATOMIC_ACQUIRE); i++)
        assert(i < 3);
    return unused;
}

static void *locally(void *unused)
{
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
        assert(rounds++ < 3);
    return unused;
}

static void *stuck(void *unused)
{
    while (__atomic_load_n(&x, __ATOMIC_ACQUIRE) == 0) {}
    return unused;
}

static void *writes_once(void *unused)
{
    __atomic_store_n(&x, 0, __ATOMIC_RELEASE);
    return unused;
}

static void *either(void *unused)
{
    while (!__atomic_load_n(&x, __ATOMIC_ACQUIRE) && !__atomic_load_n(&y, __ATOMIC_ACQUIRE)) {}
    return unused;
}

static void *back(void *unused)
{
    __atomic_store_n(&x, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&x, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&y, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static int both(void) { return counter == 2; }
static int any(void) { return r1 || r2; }
static int yes(void) { return 1; }

static const struct { const char *name; void *(*one)(void *), *(*two)(void *); int (*holds)(void); } ALL[] = {
    { "counter", counts, counts, both }, { "atomic", adds, adds, both },   { "test", tests, tests, both },
    { "flag", takes, hands, yes },       { "early", takes, hands_early, yes },
    { "tas", tas, tas, both },           { "ticket", ticket, ticket, both }, { "dekker", left, right, any },
    { "peterson", peterson, peterson, both },                            { "open", open_door, open_door, both },
    { "gives-up", gives_up, hands, yes },  { "locally", locally, hands, yes },
    { "stuck", stuck, writes_once, yes },  { "back", either, back, yes },
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
