/* A timer of which the signal is blocked is shown by a descriptor, or not yet; one with a period is read with one expiry or several. */
#include "t.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>

static int descriptor, turn;

static void *reads(void *unused)
{
    struct signalfd_siginfo info;
    (void)unused;
    assert(read(descriptor, &info, sizeof info) == sizeof info);
    turn = turn * 10 + 1;
    return 0;
}

static void *writes(void *lock)
{
    MUST(pthread_mutex_lock(lock));
    MUST(pthread_mutex_unlock(lock));
    return 0;
}

int main(int argc, char **argv)
{
    struct itimerval soon = {{0, 0}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct signalfd_siginfo info;
    struct timespec none = {0, 0};
    char kind = argc > 1 ? argv[1][0] : 'r';
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    MUST(sigprocmask(SIG_BLOCK, &set, 0));
    if (kind == 'p') {
        struct itimerspec period = {{0, 1000000}, {0, 1000000}};
        uint64_t n;
        int fd = timerfd_create(CLOCK_MONOTONIC, 0);
        MUST(timerfd_settime(fd, 0, &period, 0));
        assert(read(fd, &n, sizeof n) == sizeof n);
        assert(n == 1 || argv[1][1]);
        return 0;
    }
    descriptor = signalfd(-1, &set, kind == 'b' ? 0 : SFD_NONBLOCK);
    MUST(setitimer(ITIMER_REAL, &soon, 0));
    if (kind == 'r') {
        long got = read(descriptor, &info, sizeof info);
        assert(got == -1 ? errno == EAGAIN : got == sizeof info);
        assert(got == -1);
    }
    if (kind == 'b') { /* It fires before the other thread has its lock, or after. */
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_t reader = go(reads, 0), other = go(writes, &lock);
        MUST(pthread_mutex_lock(&lock));
        int before = turn;
        MUST(pthread_mutex_unlock(&lock));
        MUST(pthread_join(other, 0));
        MUST(pthread_join(reader, 0));
        assert(before == 0);
    }
    if (kind == 's') {
        sigpending(&pending);
        assert(sigismember(&pending, SIGALRM) >= 0);
    }
    if (kind == 'd') {
        MUST(setitimer(ITIMER_REAL, &never, 0));
        assert(sigtimedwait(&set, 0, &none) == -1);
    }
    return 0;
}
