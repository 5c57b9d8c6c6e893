#define _GNU_SOURCE
// Signals and calls on descriptors: a read that waits fails with EINTR or, with SA_RESTART, goes on; a poll never goes on;
// ppoll takes signals with a mask of its own only; a signal descriptor says who sent the signal.
// buggy: the reader takes EINTR for the end of its input.
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int ends[2];
static pthread_t reader;
static volatile sig_atomic_t handled;

static void handler(int signal) {
    (void)signal;
    handled++;
}

static void *sends(void *unused) {
    (void)unused;
    pthread_kill(reader, SIGUSR1);
    assert(write(ends[1], "x", 1) == 1);
    return 0;
}

static void install(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    assert(sigaction(SIGUSR1, &action, 0) == 0);
}

static void reads(int flags, int gives_up) {
    pthread_t sender;
    char byte = 0;
    install(flags);
    reader = pthread_self();
    assert(pthread_create(&sender, 0, sends, 0) == 0);
    ssize_t n = read(ends[0], &byte, 1);
    if (!gives_up)
        while (n < 0 && errno == EINTR)
            n = read(ends[0], &byte, 1);
    assert(n == 1 && byte == 'x');
    pthread_join(sender, 0);
    assert(handled == 1);
}

static void polls(void) {
    pthread_t sender;
    sigset_t all, none, pending;
    struct pollfd asked = {.fd = ends[0], .events = POLLIN};
    char byte;
    sigfillset(&all);
    sigemptyset(&none);
    install(SA_RESTART);
    reader = pthread_self();
    assert(pthread_sigmask(SIG_SETMASK, &all, 0) == 0);
    assert(pthread_create(&sender, 0, sends, 0) == 0);
    int n = ppoll(&asked, 1, 0, &none);
    // The handler runs in a poll that found nothing, and only there.
    assert(n == 1 ? handled == 0 : n == -1 && errno == EINTR && handled == 1);
    assert(read(ends[0], &byte, 1) == 1);
    pthread_join(sender, 0);
    assert(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == (n == 1));
    if (n == 1) {
        assert(ppoll(&asked, 1, 0, &none) == -1 && errno == EINTR);
        assert(handled == 1);
    }
}

static void described(void) {
    sigset_t set;
    struct signalfd_siginfo info;
    union sigval value = {.sival_int = 42};
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert(sigprocmask(SIG_BLOCK, &set, 0) == 0);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    assert(sigqueue(getpid(), SIGUSR1, value) == 0);
    assert(read(fd, &info, sizeof info) == sizeof info);
    assert(info.ssi_signo == SIGUSR1 && info.ssi_code == SI_QUEUE && info.ssi_int == 42);
    assert(info.ssi_pid == (unsigned)getpid() && info.ssi_uid == getuid());
    assert(read(fd, &info, sizeof info) == -1 && errno == EAGAIN);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    assert(pipe(ends) == 0);
    if (!strcmp(what, "buggy"))
        reads(0, 1);
    else if (!strcmp(what, "fixed"))
        reads(0, 0);
    else if (!strcmp(what, "restarts"))
        reads(SA_RESTART, 1);
    else if (!strcmp(what, "polls"))
        polls();
    else
        described();
    return 0;
}
