/*
 * A thread that is not the first forks. SIGCHLD is sent to its process in the name of that thread, which is the first to take it
 * (kernel/signal.c, do_notify_parent and complete_signal).  forker_signal VARIANT
 *   first     the handler is taken to run in the first thread
 *   blocked   the one that forks blocks the signal: the first thread takes it
 *   gone      the one that has forked is over before: so does it then
 */
#include "t.h"
#include <signal.h>

static volatile sig_atomic_t got;
static pthread_t taker;
static sem_t *go_on;
static const char *what;

static void handler(int sig)
{
    (void)sig;
    taker = pthread_self();
    got = 1;
}

static void *forks(void *arg)
{
    if (strcmp(what, "blocked") == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    if (fork() == 0) {
        if (strcmp(what, "gone") == 0)
            while (sem_wait(go_on) != 0) {}
        _exit(0);
    }
    if (strcmp(what, "gone") != 0)
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR) {}
    return arg;
}

int main(int argc, char **argv)
{
    (void)argc;
    what = argv[1];
    go_on = shared(sizeof *go_on);
    sem_init(go_on, 1, 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    pthread_t forker = go(forks, NULL);
    pthread_join(forker, NULL);
    if (strcmp(what, "gone") == 0) {
        sem_post(go_on);
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR) {}
    }
    if (got) assert(!pthread_equal(taker, forker));
    return 0;
}
