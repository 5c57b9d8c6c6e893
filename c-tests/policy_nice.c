/* Who sets a policy sets the nice value again that it has read before: what another thread sets in between is lost. */
#include "t.h"
#include <sched.h>
#include <sys/resource.h>

static void *nicer(void *unused)
{
    MUST(setpriority(PRIO_PROCESS, getpid(), 4));
    return unused;
}

int main(int argc, char **argv)
{
    struct sched_param none = {0};
    pthread_t t = go(nicer, NULL);
    MUST(sched_setscheduler(getpid(), SCHED_BATCH, &none));
    join(t);
    if (arg_is(argc, argv, "fixed")) MUST(setpriority(PRIO_PROCESS, getpid(), 4));
    assert(getpriority(PRIO_PROCESS, getpid()) == 4);
    return 0;
}
