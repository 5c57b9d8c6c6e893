/* A signal that answers a call comes while that call has still to return: before the code behind it runs, together with another one of its
 * kind, or to a thread that changes its mask. */
#include <signal.h>
#include <sys/syscall.h>

#include "t.h"

static sem_t s, done;
static volatile int step, early, count, by_other, before;
static pthread_t first;
static pid_t self;
static int number = SIGUSR1, in[2], on[2];

static void note(int signal)
{
    (void)signal;
    count++;
    early |= step == 0;
    by_other |= !pthread_equal(pthread_self(), first);
}

static void handle(int signal)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    MUST(sigaction(signal, &action, NULL));
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static void *answer(void *arg)
{
    wait_for(&s);
    MUST(syscall(SYS_tgkill, self, self, number));
    return arg;
}

static void *send(void *arg)
{
    MUST(syscall(SYS_tgkill, self, self, number));
    before = step == 0;
    return arg;
}

static void *idle(void *arg)
{
    wait_for(&done);
    return arg;
}

static void *mask(void *arg)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    MUST(sem_post(&s));
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    return arg;
}

static void *fails(void *arg)
{
    char c;
    MUST(sem_post(&s));
    if (read(in[1], &c, 1) != -1)
        abort();
    step = 1;
    return arg;
}

static void relay(void)
{
    char c;
    if (read(in[0], &c, 1) != 1 || write(on[1], &c, 1) != 1)
        abort();
}

static void kill_parent(void)
{
    char c;
    if (read(on[0], &c, 1) != 1)
        abort();
    MUST(kill(self, SIGUSR1));
}

static void put(int fd)
{
    if (write(fd, "x", 1) != 1)
        abort();
    step = 1;
}

int main(int argc, char **argv)
{
    sigset_t set;
    pthread_t t, u;

    first = pthread_self();
    self = getpid();
    sem_init(&s, 0, 0);
    sem_init(&done, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (arg_is(argc, argv, "queued"))
        number = SIGRTMIN;
    handle(number);
    if (arg_is(argc, argv, "post") || arg_is(argc, argv, "blocked")) {
        if (arg_is(argc, argv, "blocked"))
            MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
        t = go(answer, NULL);
        MUST(sem_post(&s));
        step = 1;
        MUST(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
        join(t);
        assert(!early);
    } else if (arg_is(argc, argv, "create")) {
        t = go(send, NULL);
        step = 1;
        join(t);
        assert(!early);
    } else if (arg_is(argc, argv, "write") || arg_is(argc, argv, "apart")) {
        int apart = arg_is(argc, argv, "apart");
        MUST(pipe(in));
        MUST(pipe(on));
        if (apart)
            fork_run(relay);
        fork_run(kill_parent);
        put(apart ? in[1] : on[1]);
        while (wait(NULL) > 0)
            ;
        assert(!early);
    } else if (arg_is(argc, argv, "alarm")) {
        handle(SIGALRM);
        t = go(idle, NULL);
        alarm(1);
        step = 1;
        MUST(sem_post(&done));
        join(t);
        alarm(0);
        assert(!early);
    } else if (arg_is(argc, argv, "merged") || arg_is(argc, argv, "queued")) {
        int queued = arg_is(argc, argv, "queued");
        t = go(queued ? idle : send, NULL);
        u = go(answer, NULL);
        if (queued)
            MUST(syscall(SYS_tgkill, self, self, number));
        MUST(sem_post(&s));
        step = 1;
        if (queued)
            MUST(sem_post(&done));
        join(t);
        join(u);
        assert(!before && !queued || count == 2);
    } else if (arg_is(argc, argv, "mask")) {
        t = go(mask, NULL);
        wait_for(&s);
        MUST(kill(self, SIGUSR1));
        join(t);
        assert(!by_other);
    } else if (arg_is(argc, argv, "failed")) {
        MUST(pipe(in));
        t = go(fails, NULL);
        wait_for(&s);
        MUST(pthread_cancel(t));
        join(t);
        assert(step);
    }
    return 0;
}
