/*
 * What a handler does to memory is its thread's, also where the thread waits afterwards for what another one holds.
 *
 * late: the handler tells the other thread and writes then; the other one looks meanwhile and may find the old value.  The thread of
 * the handler cannot go on before that, since the other one holds the mutex.
 * first: the same, with the value written before the other thread is told.
 * flag: a flag that one thread alone uses, in its handler and outside: nobody else uses it, whoever goes on after the handler.
 */
#include "t.h"

#include <signal.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, told;
static pthread_t waits;
static int value, first;
static volatile sig_atomic_t flag, seen;

static void on_signal(int signal)
{
    (void)signal;
    if (first)
        value = 1;
    MUST(sem_post(&told));
    if (!first)
        value = 1;
}

static void *holder(void *unused)
{
    (void)unused;
    MUST(pthread_mutex_lock(&m));
    MUST(sem_post(&held));
    MUST(pthread_kill(waits, SIGUSR1));
    MUST(sem_wait(&told));
    assert(value == 1);
    MUST(pthread_mutex_unlock(&m));
    return NULL;
}

static void set_flag(int signal)
{
    (void)signal;
    flag = 1;
}

static void *signals(void *unused)
{
    (void)unused;
    MUST(pthread_kill(waits, SIGUSR1));
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_mutex_unlock(&m));
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = arg_is(argc, argv, "flag") ? set_flag : on_signal};
    pthread_t t;

    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(sem_init(&held, 0, 0));
    MUST(sem_init(&told, 0, 0));
    waits = pthread_self();
    if (arg_is(argc, argv, "flag")) {
        t = go(signals, NULL);
        MUST(pthread_mutex_lock(&m));
        MUST(pthread_mutex_unlock(&m));
        seen = flag;
    } else {
        first = arg_is(argc, argv, "first");
        t = go(holder, NULL);
        MUST(sem_wait(&held));
        MUST(pthread_mutex_lock(&m));
        MUST(pthread_mutex_unlock(&m));
    }
    join(t);
    return 0;
}
