// Times that are none, clocks that are not there, flags that nobody knows.
#include "check.h"
#include <mqueue.h>
#include <linux/futex.h>

// Each is no valid time for any call, but for the negative one, which some take.
static const struct {
    const char *name;
    struct timespec time;
} odd[] = {
    {"nsec -1", {0, -1}},
    {"nsec 1e9", {0, 1000000000}},
    {"sec -1", {-1, 0}},
    {"sec -1 nsec 1e9", {-1, 1000000000}},
    {"sec min", {(-9223372036854775807L - 1), 0}},
    {"nsec min", {0, (-9223372036854775807L - 1)}},
};

#define EACH_TIME(what, call)                                   \
    for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {   \
        struct timespec *t = (struct timespec *)&odd[i].time;   \
        errno = 0;                                              \
        long r = (long)(call);                                  \
        if (r == -1)                                            \
            say("%s, %s: -1 %s", what, odd[i].name, strerrorname_np(errno)); \
        else                                                    \
            say("%s, %s: %ld", what, odd[i].name, r);           \
    }

static void sleeps(void) {
    struct timespec left;
    EACH_TIME("nanosleep", nanosleep(t, &left));
    EACH_TIME("clock_nanosleep monotonic", clock_nanosleep(CLOCK_MONOTONIC, 0, t, 0));
    EACH_TIME("clock_nanosleep until", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, t, 0));
    static const int clocks[] = {-1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 15, 100, 2147483647};
    struct timespec none = {0, 0};
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        char name[60];
        sprintf(name, "clock_nanosleep of clock %d", clocks[i]);
        number(name, clock_nanosleep(clocks[i], 0, &none, 0));
    }
    NUMBER(clock_nanosleep(CLOCK_MONOTONIC, 2, &none, 0));
    NUMBER(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &none, &left));
    CHECK(usleep(0));
    CHECK(sleep(0));
}

static void clocks(void) {
    static const int clocks[] = {-1, -2, 0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 15, 100, 2147483647, (-2147483647 - 1)};
    struct timespec t;
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        char name[60];
        sprintf(name, "clock_gettime of clock %d", clocks[i]);
        NAMED(name, clock_gettime(clocks[i], &t));
        sprintf(name, "the call clock_gettime of clock %d", clocks[i]);
        NAMED(name, syscall(SYS_clock_gettime, clocks[i], &t));
        sprintf(name, "clock_getres of clock %d", clocks[i]);
        NAMED(name, clock_getres(clocks[i], &t));
        sprintf(name, "clock_getres of clock %d without a place", clocks[i]);
        NAMED(name, clock_getres(clocks[i], 0));
    }
    clockid_t clock;
    NUMBER(clock_getcpuclockid(0, &clock));
    NUMBER(clock_getcpuclockid(getpid(), &clock));
    CHECK(clock_gettime(clock, &t));
    NUMBER(clock_getcpuclockid(1 << 29, &clock));
    NUMBER(pthread_getcpuclockid(pthread_self(), &clock));
    CHECK(clock_gettime(clock, &t));
    CHECK(clock_settime(CLOCK_MONOTONIC, &t));
    CHECK(clock_settime(77, &t));
}

static void polls(void) {
    EACH_TIME("ppoll", ppoll(0, 0, t, 0));
    EACH_TIME("pselect", pselect(0, 0, 0, 0, t, 0));
    int ep = epoll_create1(0);
    struct epoll_event e;
    EACH_TIME("epoll_pwait2", syscall(SYS_epoll_pwait2, ep, &e, 1, t, 0, 8));
    close(ep);
    struct timeval v = {0, -1};
    CHECK(select(0, 0, 0, 0, &v));
    v = (struct timeval){-1, 0};
    CHECK(select(0, 0, 0, 0, &v));
    v = (struct timeval){0, 1000001};
    CHECK(select(0, 0, 0, 0, &v));
    say("time left: %ld %ld", (long)v.tv_sec, (long)v.tv_usec);
    // What is left when something is there at once.
    int p[2];
    CHECK(pipe(p));
    CHECK(write(p[1], "x", 1));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p[0], &set);
    v = (struct timeval){1000, 0};
    CHECK(select(p[0] + 1, &set, 0, 0, &v));
    say("time left: %d", v.tv_sec == 999 || v.tv_sec == 1000);
    v = (struct timeval){0, 2000};
    FD_ZERO(&set);
    CHECK(select(0, &set, 0, 0, &v));
    say("time left: %ld %ld", (long)v.tv_sec, (long)v.tv_usec);
    struct timespec s = {0, 2000};
    CHECK(syscall(SYS_ppoll, 0, 0, &s, 0, 8));
    say("time left: %ld %ld", (long)s.tv_sec, s.tv_nsec);
    s = (struct timespec){0, 2000};
    CHECK(syscall(SYS_pselect6, 0, 0, 0, 0, &s, 0));
    say("time left: %ld %ld", (long)s.tv_sec, s.tv_nsec);
    close(p[0]);
    close(p[1]);
    CHECK(poll(0, 0, 0));
    CHECK(poll(0, 100000, 0));
    CHECK(select(-1, 0, 0, 0, 0));
    sigset_t mask;
    sigemptyset(&mask);
    CHECK(syscall(SYS_ppoll, 0, 0, &s, &mask, 4));
    struct {
        void *at;
        size_t size;
    } sized = {&mask, 4};
    CHECK(syscall(SYS_pselect6, 0, 0, 0, 0, &s, &sized));
}

static void timers(void) {
    int t = timerfd_create(CLOCK_MONOTONIC, 0);
    for (int which = 0; which < 2; which++) {
        EACH_TIME(which ? "timerfd_settime, period" : "timerfd_settime, value", ({
                      struct itimerspec s = {which ? *t : (struct timespec){0, 0}, which ? (struct timespec){1000, 0} : *t};
                      timerfd_settime(3, 0, &s, 0);
                  }));
    }
    close(t);
    struct itimerspec none = {{0, 0}, {0, 0}};
    CHECK(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
    CHECK(timerfd_create(77, 0));
    CHECK(timerfd_create(CLOCK_REALTIME, 1));
    t = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    CHECK(timerfd_settime(t, 4, &none, 0));
    CHECK(timerfd_settime(t, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &none, 0));
    char room[8];
    CHECK(read(t, room, 7));
    CHECK(read(t, room, 8));
    CHECK(write(t, room, 8));
    close(t);
    timer_t id;
    CHECK(timer_create(77, 0, &id));
    CHECK(timer_create(-3, 0, &id));
    struct sigevent e = {.sigev_notify = 99};
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &id));
    e = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 77};
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &id));
    e = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 0};
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &id));
    e = (struct sigevent){.sigev_notify = SIGEV_NONE};
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &id));
    for (int which = 0; which < 2; which++) {
        EACH_TIME(which ? "timer_settime, period" : "timer_settime, value", ({
                      struct itimerspec s = {which ? *t : (struct timespec){0, 0}, which ? (struct timespec){1000, 0} : *t};
                      timer_settime(id, 0, &s, 0);
                  }));
    }
    struct itimerspec now;
    timer_settime(id, 0, &none, 0);
    CHECK(timer_gettime(id, &now));
    CHECK(timer_getoverrun(id));
    CHECK(timer_settime(id, 2, &none, 0));
    CHECK(timer_delete(id));
    CHECK(syscall(SYS_timer_delete, 77));
    CHECK(syscall(SYS_timer_gettime, 77, &now));
    CHECK(syscall(SYS_timer_settime, 77, 0, &none, 0));
    CHECK(syscall(SYS_timer_getoverrun, -1));
    struct itimerval v = {{0, 0}, {0, 1000000}};
    CHECK(setitimer(ITIMER_REAL, &v, 0));
    v = (struct itimerval){{0, -1}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &v, 0));
    v = (struct itimerval){{0, 0}, {-1, 0}};
    CHECK(setitimer(ITIMER_REAL, &v, 0));
    CHECK(setitimer(3, &v, 0));
    CHECK(setitimer(-1, &v, 0));
    CHECK(getitimer(3, &v));
    CHECK(alarm(0));
    CHECK(alarm(100));
    CHECK(alarm(0));
}

static void waits(void) {
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {0, -1, 0}, add = {0, 1, 0};
    EACH_TIME("semtimedop that waits", semtimedop(set, &take, 1, t));
    EACH_TIME("semtimedop that goes on", semtimedop(set, &add, 1, t));
    CHECK(semctl(set, 0, GETVAL));
    semctl(set, 0, IPC_RMID);
    mq_unlink("/vsrun-conformance-time");
    struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 8};
    int q = mq_open("/vsrun-conformance-time", O_RDWR | O_CREAT, 0600, &small);
    mq_unlink("/vsrun-conformance-time");
    char text[8];
    EACH_TIME("mq_timedreceive of nothing", mq_timedreceive(q, text, 8, 0, t));
    CHECK(mq_send(q, "abc", 4, 0));
    EACH_TIME("mq_timedsend to a full one", mq_timedsend(q, "abc", 4, 0, t));
    EACH_TIME("mq_timedreceive", mq_timedreceive(q, text, 8, 0, t));
    close(q);
    uint32_t word = 5;
    EACH_TIME("futex wait", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 5, t, 0, 0));
    EACH_TIME("futex wait of another value", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 6, t, 0, 0));
    EACH_TIME("futex wait bitset", syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 5, t, 0, -1));
    word = 0;
    EACH_TIME("futex lock pi", (word = 0, syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, t, 0, 0)));
    sigset_t usr;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr, 0);
    EACH_TIME("sigtimedwait", sigtimedwait(&usr, 0, t));
    raise(SIGUSR1);
    EACH_TIME("sigtimedwait of one", sigtimedwait(&usr, 0, t));
    struct timespec none = {0, 0};
    CHECK(sigtimedwait(&usr, 0, &none));
    sigprocmask(SIG_UNBLOCK, &usr, 0);
}

static void locks(void) {
    sem_t s;
    sem_init(&s, 0, 0);
    EACH_TIME("sem_timedwait", sem_timedwait(&s, t));
    EACH_TIME("sem_clockwait", sem_clockwait(&s, CLOCK_MONOTONIC, t));
    struct timespec past = {1, 0};
    CHECK(sem_clockwait(&s, 77, &past));
    CHECK(sem_clockwait(&s, CLOCK_PROCESS_CPUTIME_ID, &past));
    sem_post(&s);
    EACH_TIME("sem_timedwait of one", (sem_post(&s), sem_timedwait(&s, t)));
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    EACH_TIME("mutex_timedlock of a free one", ({
                  int r = pthread_mutex_timedlock(&m, t);
                  if (r == 0) pthread_mutex_unlock(&m);
                  r;
              }));
    pthread_mutex_lock(&m);
    EACH_TIME("mutex_timedlock of a held one", pthread_mutex_timedlock(&m, t));
    EACH_TIME("mutex_clocklock of a held one", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, t));
    NUMBER(pthread_mutex_clocklock(&m, 77, &past));
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    EACH_TIME("cond_timedwait", pthread_cond_timedwait(&c, &m, t));
    EACH_TIME("cond_clockwait", pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, t));
    NUMBER(pthread_cond_clockwait(&c, &m, 77, &past));
    pthread_mutex_unlock(&m);
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    EACH_TIME("rwlock_timedrdlock of a free one", ({
                  int r = pthread_rwlock_timedrdlock(&l, t);
                  if (r == 0) pthread_rwlock_unlock(&l);
                  r;
              }));
    pthread_rwlock_rdlock(&l);
    EACH_TIME("rwlock_timedwrlock of a held one", pthread_rwlock_timedwrlock(&l, t));
    EACH_TIME("rwlock_clockwrlock of a held one", pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, t));
    NUMBER(pthread_rwlock_clockwrlock(&l, 77, &past));
    pthread_rwlock_unlock(&l);
}

static const struct group groups[] = {
    {"sleeps", sleeps}, {"clocks", clocks}, {"polls", polls}, {"timers", timers},
    {"waits", waits},   {"locks", locks},   {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
