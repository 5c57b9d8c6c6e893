/* Two threads call exit: which of them runs which handler is libc's and the scheduler's doing. */
#include "t.h"

static void nothing(void)
{
}

static void *exits(void *unused)
{
    (void)unused;
    exit(0);
}

int main(int argc, char **argv)
{
    pthread_t t;
    atexit(nothing);
    t = go(exits, NULL);
    if (arg_is(argc, argv, "one")) join(t);
    exit(0);
}
