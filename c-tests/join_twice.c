/* Two threads join one: POSIX leaves that open, and with glibc 2.36 one of them may wait for ever.  Fixed: only one joins. */
#include "t.h"

static pthread_t t;
static sem_t over;

static void *waits(void *unused)
{
    MUST(sem_wait(&over));
    return unused;
}

static void *joins(void *unused)
{
    pthread_join(t, NULL);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t a, b;
    MUST(sem_init(&over, 0, 0));
    t = go(waits, NULL);
    a = go(joins, NULL);
    if (!arg_is(argc, argv, "fixed")) b = go(joins, NULL);
    MUST(sem_post(&over));
    join(a);
    if (!arg_is(argc, argv, "fixed")) join(b);
    return 0;
}
