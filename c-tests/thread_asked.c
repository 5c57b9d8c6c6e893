/* A thread that ends may be over or not when it is asked about, or something is asked of it: libc knows by itself, and makes no call then. The
   program is wrong to expect that it is over ("over") or that it is still there ("there"). "self": of the own thread nobody can tell. */
#define _GNU_SOURCE
#include "t.h"
#include <sched.h>
#include <signal.h>

static int got;

static void handler(int sig)
{
    (void)sig;
    got = 1;
}

static void *ends(void *unused)
{
    return unused;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    int over = argc > 1 && strcmp(argv[1], "over") == 0, is_over = 0;
    pthread_t t = argc > 1 && strcmp(argv[1], "self") == 0 ? pthread_self() : go(ends, NULL);
    struct sched_param param;
    int policy;
    char name[16];
    clockid_t clock;

    signal(SIGUSR1, handler);
    if (strcmp(what, "kill") == 0) {
        assert(pthread_kill(t, SIGUSR1) == 0);
        if (!pthread_equal(t, pthread_self()))
            join(t);
        assert(argc > 1 && (strcmp(argv[1], "self") == 0 ? got : got == !over));
        return 0;
    }
    if (strcmp(what, "param") == 0)
        is_over = pthread_getschedparam(t, &policy, &param) == ESRCH;
    else if (strcmp(what, "name") == 0)
        is_over = pthread_getname_np(t, name, sizeof name) != 0;
    else
        is_over = pthread_getcpuclockid(t, &clock) == ESRCH;
    assert(is_over == over);
    if (!pthread_equal(t, pthread_self()))
        join(t);
    return 0;
}
