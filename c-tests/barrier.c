/* Two threads at a barrier for three (buggy) or two (fixed), twice. */
#include "t.h"

static pthread_barrier_t b;
static int serial[2];

static void *meet(void *unused)
{
    for (int i = 0; i < 2; i++) {
        int rc = pthread_barrier_wait(&b);

        if (rc == PTHREAD_BARRIER_SERIAL_THREAD)
            serial[i]++;
        else
            MUST(rc);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t1, t2;

    MUST(pthread_barrier_init(&b, NULL, arg_is(argc, argv, "fixed") ? 2 : 3));
    t1 = go(meet, NULL);
    t2 = go(meet, NULL);
    join(t1);
    join(t2);
    MUST(pthread_barrier_destroy(&b));
    assert(serial[0] == 1 && serial[1] == 1);
    return 0;
}
