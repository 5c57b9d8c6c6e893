/*
 * A thread that waits gets a signal and is asked to end: the handler may never run.  cancel_signalled VARIANT KIND
 *   runs   the handler is thought to have run
 *   may    it has run, or the thread has been cancelled
 * KIND: read, wait (for a semaphore), join, receive (from a message queue), cond
 */
#include <signal.h>
#include <sys/msg.h>

#include "t.h"

static const char *kind;
static int ends[2], messages;
static volatile sig_atomic_t handled;
static sem_t sem;
static pthread_t waited;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static void handles(int signal)
{
    (void)signal;
    handled = 1;
}

static void *sleeps(void *arg)
{
    int byte;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    read(ends[0], &byte, 1);
    return arg;
}

/* libc loads what unwinds. */
static void *leaves(void *arg)
{
    pthread_exit(arg);
}

static void unlocks(void *unused)
{
    (void)unused;
    MUST(pthread_mutex_unlock(&m));
}

static void *waits(void *arg)
{
    char all[64];
    if (is("read")) read(ends[0], all, 1);
    if (is("wait")) sem_wait(&sem);
    if (is("join")) join(waited);
    if (is("receive")) msgrcv(messages, all, 8, 0, 0);
    if (is("cond")) {
        MUST(pthread_mutex_lock(&m));
        pthread_cleanup_push(unlocks, NULL);
        pthread_cond_wait(&c, &m);
        pthread_cleanup_pop(1);
    }
    return arg;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = handles };
    void *result;
    pthread_t t;
    kind = argv[2];
    MUST(pipe(ends));
    MUST(sem_init(&sem, 0, 0));
    MUST(sigaction(SIGUSR1, &action, NULL));
    if (is("receive")) messages = msgget(IPC_PRIVATE, 0600);
    if (is("join")) waited = go(sleeps, NULL);
    join(go(leaves, NULL));
    t = go(waits, NULL);
    MUST(pthread_kill(t, SIGUSR1));
    MUST(pthread_cancel(t));
    MUST(pthread_join(t, &result));
    if (is("receive")) MUST(msgctl(messages, IPC_RMID, NULL));
    if (is("join")) {
        assert(write(ends[1], "x", 1) == 1);
        join(waited);
    }
    assert(handled || (arg_is(argc, argv, "may") && result == PTHREAD_CANCELED));
    return 0;
}
