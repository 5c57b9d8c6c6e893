/*
 * A process sends itself a signal while another thread of it changes what it does about that, or is about to end.  self_signal VARIANT
 *   kill      kill of the own process: the other thread may not have set the handler yet
 *   raise     the same with raise
 *   flush     the other thread ignores the signal, which drops what is pending
 *   joined    the other thread has been waited for: the handler is there
 */
#include "t.h"

static volatile sig_atomic_t handled;

static void handler(int sig)
{
    (void)sig;
    handled = 1;
}

static void *sets(void *arg)
{
    assert(signal(SIGUSR2, arg ? SIG_IGN : handler) != SIG_ERR);
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[1], "flush") == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        assert(signal(SIGUSR2, handler) != SIG_ERR);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        pthread_t other = go(sets, (void *)1);
        raise(SIGUSR2);
        sigpending(&set);
        assert(sigismember(&set, SIGUSR2));
        pthread_join(other, NULL);
        return 0;
    }
    pthread_t other = go(sets, NULL);
    if (strcmp(argv[1], "joined") == 0) pthread_join(other, NULL);
    if (strcmp(argv[1], "raise") == 0)
        raise(SIGUSR2);
    else
        kill(getpid(), SIGUSR2);
    assert(handled);
    return 0;
}
