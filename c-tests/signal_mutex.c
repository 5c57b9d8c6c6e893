/* A signal handler that takes a mutex of the thread that it interrupts. Fixed: the signal is blocked while the mutex is
 * held. */
#include <signal.h>

#include "t.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void handler(int signal)
{
    (void)signal;
    MUST(pthread_mutex_lock(&lock));
    count++;
    MUST(pthread_mutex_unlock(&lock));
}

static void *sender(void *main_thread)
{
    MUST(pthread_kill(*(pthread_t *)main_thread, SIGUSR1));
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    pthread_t self = pthread_self();
    sigset_t set;
    int fixed = arg_is(argc, argv, "fixed");

    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_t t = go(sender, &self);
    if (fixed)
        MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    MUST(pthread_mutex_lock(&lock));
    count++;
    MUST(pthread_mutex_unlock(&lock));
    if (fixed)
        MUST(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
    join(t);
    if (count != 2)
        abort();
    return 0;
}
