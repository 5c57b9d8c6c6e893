/* A signal for a process goes to the first thread if that wants it, unless it is about to take another one: then to a different thread.
 * "late": of two that wait for it one has not begun to when it comes, so the other one is woken; a third takes it meanwhile. */
#include "t.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>

static pthread_t first, taker;

static void one(int signal)
{
    (void)signal;
}

static void two(int signal)
{
    (void)signal;
    taker = pthread_self();
}

static void *sends(void *both)
{
    MUST(kill(getpid(), SIGUSR1));
    if (both) MUST(kill(getpid(), SIGUSR2));
    return NULL;
}

static int errors[2];

static void *waits(void *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    *(int *)error = sigtimedwait(&set, NULL, &(struct timespec){0, 1000000}) < 0 ? errno : 0;
    return NULL;
}

static void late(void)
{
    struct itimerval value = {.it_value = {0, 1000}};
    struct signalfd_siginfo info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    MUST(setitimer(ITIMER_REAL, &value, NULL));
    pthread_t a = go(waits, &errors[0]), b = go(waits, &errors[1]);
    int fd = signalfd(-1, &set, 0);
    MUST(read(fd, &info, sizeof info) != sizeof info);
    join(a), join(b);
    assert(errors[0] != EAGAIN || errors[1] != EINTR);
    exit(0);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = one};
    pthread_t t;
    if (arg_is(argc, argv, "late")) late();
    first = taker = pthread_self();
    MUST(sigaction(SIGUSR1, &action, NULL));
    action.sa_handler = two;
    MUST(sigaction(SIGUSR2, &action, NULL));
    t = go(sends, arg_is(argc, argv, "one") ? NULL : &first);
    join(t);
    if (arg_is(argc, argv, "seen")) assert(pthread_equal(taker, first));
    return 0;
}
