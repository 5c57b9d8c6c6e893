/*
 * A daemon: a parent that detaches it, a main loop that hands requests from a pipe to a worker, a SIGTERM handler that asks
 * for the end.  Buggy: the main loop sees the request to end only before it waits for input, and where the signal comes
 * in between it waits for ever, since the client waits for the daemon's end.  Fixed: the signal is let in by
 * ppoll alone, and the worker is told to end and joined.
 */
#include "t.h"

#include <poll.h>
#include <signal.h>

static volatile sig_atomic_t ends;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int work, over;

static void on_term(int signal)
{
    (void)signal;
    ends = 1;
}

static void *worker(void *unused)
{
    (void)unused;
    MUST(pthread_mutex_lock(&m));
    while (work > 0 || !over) {
        if (work > 0)
            work--;
        else
            MUST(pthread_cond_wait(&c, &m));
    }
    MUST(pthread_mutex_unlock(&m));
    return NULL;
}

static void tell(int *what)
{
    MUST(pthread_mutex_lock(&m));
    ++*what;
    MUST(pthread_cond_signal(&c));
    MUST(pthread_mutex_unlock(&m));
}

static void serve(int input, int fixed)
{
    struct sigaction action = {.sa_handler = on_term};
    struct pollfd in = {.fd = input, .events = POLLIN};
    sigset_t term, none;
    char byte;

    sigemptyset(&none);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    MUST(sigaction(SIGTERM, &action, NULL));
    pthread_t t = go(worker, NULL);
    /* Blocked since before the fork: now it may come. */
    if (!fixed)
        MUST(pthread_sigmask(SIG_UNBLOCK, &term, NULL));
    while (!ends) {
        if (fixed && ppoll(&in, 1, NULL, &none) < 0) {
            MUST(errno != EINTR);
            continue;
        }
        if (read(input, &byte, 1) == 1)
            tell(&work);
    }
    tell(&over);
    join(t);
    _exit(0);
}

int main(int argc, char **argv)
{
    int requests[2], fixed = arg_is(argc, argv, "fixed"), status;
    sigset_t term;
    pid_t daemon;

    MUST(pipe(requests));
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    MUST(pthread_sigmask(SIG_BLOCK, &term, NULL));
    daemon = fork();
    MUST(daemon < 0);
    if (daemon == 0)
        serve(requests[0], fixed);
    MUST(write(requests[1], "x", 1) != 1);
    MUST(kill(daemon, SIGTERM));
    MUST(waitpid(daemon, &status, 0) != daemon);
    MUST(status);
    return 0;
}
