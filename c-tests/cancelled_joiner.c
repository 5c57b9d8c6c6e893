/* A thread joins another while it holds what that one waits for; a third cancels it, sooner or later. Fixed: a cleanup handler unlocks.
 * "timed": who cancels sleeps first. "alarm": an alarm's handler cancels. Buggy: nothing unlocks. */
#include <signal.h>

#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t joiner, joined;
static int buggy, done;

static void unlock(void *arg)
{
    if (!buggy)
        MUST(pthread_mutex_unlock(arg));
}

static void *works(void *arg)
{
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return arg;
}

static void *joins(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    MUST(pthread_mutex_lock(&m));
    joined = go(works, NULL);
    pthread_cleanup_push(unlock, &m);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    MUST(pthread_join(joined, NULL));
    done = 1;
    pthread_cleanup_pop(1);
    return arg;
}

static void cancels(int signal)
{
    (void)signal;
    MUST(pthread_cancel(joiner));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = cancels, .sa_flags = SA_RESTART};
    sigset_t alarms;
    void *result;

    buggy = arg_is(argc, argv, "buggy");
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    MUST(pthread_sigmask(SIG_BLOCK, &alarms, NULL));
    joiner = go(joins, NULL);
    MUST(pthread_sigmask(SIG_UNBLOCK, &alarms, NULL));
    if (arg_is(argc, argv, "alarm"))
        alarm(1);
    else {
        if (arg_is(argc, argv, "timed"))
            sleep(1);
        cancels(0);
    }
    MUST(pthread_join(joiner, &result));
    assert(result == PTHREAD_CANCELED && !done);
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    join(joined);
    return 0;
}
