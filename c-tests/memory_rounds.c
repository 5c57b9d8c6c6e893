/* Loops that read memory and may end by themselves (--race explore). "none": nothing is ever seen in so many rounds; "ninth": it is seen in the
 * ninth. "spins": who waits spins for so many rounds and then sleeps, and is woken only in the fixed variant. "two": the same with two words.
 * "swaps": an exchange that changes nothing in place of a read. "counts": a loop that counts its rounds without a bound. */
#include "t.h"
#include "futex.h"

static int word, other, rounds, most;
static int fixed;

static int look(int *at)
{
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static void *writes(void *unused)
{
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *wakes(void *unused)
{
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    if (fixed)
        futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0);
    return unused;
}

static void reads_so_often(void)
{
    int seen = 0, first = 0;
    for (int i = 1; i <= most; i++)
        if (look(&word) && seen++ == 0)
            first = i;
    rounds = first;
}

static void spins(int two)
{
    for (int i = 0; i < most; i++)
        if (look(&word) || (two && look(&other)))
            return;
    while (!look(&word))
        futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void swaps(void)
{
    for (int i = 0; i < most; i++)
        if (__atomic_exchange_n(&word, 0, __ATOMIC_SEQ_CST))
            return;
    rounds = most;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    most = argc > 2 ? atoi(argv[2]) : 0;
    fixed = argc > 3;
    pthread_t t = go(strcmp(what, "spins") && strcmp(what, "two") ? writes : wakes, NULL);
    if (!strcmp(what, "none") || !strcmp(what, "ninth"))
        reads_so_often();
    else if (!strcmp(what, "swaps"))
        swaps();
    else if (!strcmp(what, "counts"))
        while (!look(&word))
            rounds++;
    else
        spins(!strcmp(what, "two"));
    join(t);
    assert(strcmp(what, "none") || rounds);
    assert(strcmp(what, "ninth") || rounds != 9);
    assert(strcmp(what, "swaps") || !rounds);
    return 0;
}
