/* Each trace is run once by optimal (--race explore) where threads come to their ends in another order in an execution than in the one from which its sequence is: the
 * one that leaves one thread in the process, whose end others can tell (of a pipe), is another one there. Two writes of x, between which and around which y's writer reads it: three orders;
 * and who reads y does so before or after it is written: six traces. */
#include "t.h"

static volatile long x;
static struct { char gap[64]; volatile unsigned char bits; char end[63]; } y;

static void *writes_twice(void *unused)
{
    __atomic_exchange_n(&x, 2, __ATOMIC_SEQ_CST);
    x = 0;
    return unused;
}

static void *writes_and_reads(void *unused)
{
    y.bits |= 5;
    return x == 1 ? NULL : unused;
}

static void *reads(void *unused)
{
    return y.bits == 9 ? NULL : unused;
}

int main(void)
{
    pthread_t threads[3];
    void *(*const code[3])(void *) = { writes_twice, writes_and_reads, reads };
    int ends[2];
    MUST(pipe(ends));
    for (int n = 0; n < 3; n++)
        MUST(pthread_create(&threads[n], NULL, code[n], NULL));
    for (int n = 0; n < 3; n++)
        MUST(pthread_join(threads[n], NULL));
    return 0;
}
