/* Two threads that lock two mutexes in crossing order, and an alarm whose handler breaks the circle: it unlocks what its thread holds
 * ("unlock"), or ends the process ("exit"). Buggy: it does nothing. */
#include <signal.h>

#include "t.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static const char *variant;
static sigset_t alarms;
static volatile sig_atomic_t holds;

static void handler(int signal)
{
    (void)signal;
    if (strcmp(variant, "exit") == 0)
        _exit(0);
    if (strcmp(variant, "unlock") == 0 && holds) {
        holds = 0;
        MUST(pthread_mutex_unlock(&a));
    }
}

static void *crosses(void *arg)
{
    MUST(pthread_mutex_lock(&b));
    MUST(pthread_mutex_lock(&a));
    MUST(pthread_mutex_unlock(&a));
    MUST(pthread_mutex_unlock(&b));
    return arg;
}

static void with_alarm(int how)
{
    MUST(pthread_sigmask(how, &alarms, NULL));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    pthread_t t;

    variant = argc > 1 ? argv[1] : "buggy";
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    with_alarm(SIG_BLOCK);
    t = go(crosses, NULL);
    alarm(1);
    MUST(pthread_mutex_lock(&a));
    holds = 1;
    with_alarm(SIG_UNBLOCK);
    MUST(pthread_mutex_lock(&b));
    with_alarm(SIG_BLOCK);
    MUST(pthread_mutex_unlock(&b));
    if (holds)
        MUST(pthread_mutex_unlock(&a));
    join(t);
    return 0;
}
