/* An alarm a second away beside a thread that yields until another has set a flag: either may come first. "flag": that the flag is
 * set within the second is taken for granted. "alarm": that it is not. Fixed: neither. */
#include <sched.h>
#include <signal.h>

#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static volatile sig_atomic_t rang;

static void handler(int signal)
{
    (void)signal;
    rang = 1;
}

static int is_set(void)
{
    MUST(pthread_mutex_lock(&m));
    int now = flag;
    MUST(pthread_mutex_unlock(&m));
    return now;
}

static void *sets(void *arg)
{
    MUST(pthread_mutex_lock(&m));
    flag = 1;
    MUST(pthread_mutex_unlock(&m));
    return arg;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    sigset_t alarms;
    pthread_t t;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    /* The new thread has it blocked. */
    MUST(pthread_sigmask(SIG_BLOCK, &alarms, NULL));
    t = go(sets, NULL);
    MUST(pthread_sigmask(SIG_UNBLOCK, &alarms, NULL));
    alarm(1);
    while (!rang && !is_set())
        sched_yield();
    if (arg_is(argc, argv, "flag"))
        assert(is_set());
    if (arg_is(argc, argv, "alarm"))
        assert(rang);
    join(t);
    return 0;
}
