// What the functions of libc about threads and locks answer.
#include "check.h"
#include <threads.h>

static void *nothing(void *at) {
    return at;
}

static void joins(void) {
    pthread_t t;
    void *value = 0;
    NUMBER(pthread_create(&t, 0, nothing, (void *)77));
    NUMBER(pthread_join(t, &value));
    say("value %ld", (long)value);
    pthread_attr_t a;
    pthread_attr_init(&a);
    NUMBER(pthread_attr_setdetachstate(&a, 77));
    NUMBER(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
    pthread_barrier_t b;
    pthread_barrier_init(&b, 0, 2);
    NUMBER(pthread_create(&t, 0, nothing, 0));
    NUMBER(pthread_detach(t));
    NUMBER(pthread_join(pthread_self(), 0));
    NUMBER(pthread_attr_setstacksize(&a, 100));
    NUMBER(pthread_attr_setguardsize(&a, 0));
    NUMBER(pthread_attr_setscope(&a, PTHREAD_SCOPE_PROCESS));
    NUMBER(pthread_attr_setscope(&a, 77));
    NUMBER(pthread_attr_setschedpolicy(&a, 77));
    NUMBER(pthread_attr_setinheritsched(&a, 77));
    pthread_attr_destroy(&a);
    NUMBER(pthread_setcancelstate(77, 0));
    int old;
    NUMBER(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
    say("old %d", old);
    NUMBER(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old));
    say("old %d", old);
    NUMBER(pthread_setcanceltype(77, 0));
    pthread_key_t k;
    NUMBER(pthread_key_create(&k, 0));
    NUMBER(pthread_setspecific(k, &k));
    NUMBER(pthread_key_delete(k));
    NUMBER(pthread_key_delete(k));
    NUMBER(pthread_setspecific(k, &k));
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *at) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return at;
}

static void tries(void) {
    pthread_t t;
    pthread_mutex_lock(&gate);
    pthread_create(&t, 0, waits, (void *)5);
    void *value = 0;
    NUMBER(pthread_tryjoin_np(t, &value));
    struct timespec past = {1, 0};
    NUMBER(pthread_timedjoin_np(t, &value, &past));
    NUMBER(pthread_clockjoin_np(t, &value, 77, &past));
    pthread_mutex_unlock(&gate);
    NUMBER(pthread_join(t, &value));
    say("value %ld", (long)value);
    NUMBER(pthread_tryjoin_np(pthread_self(), &value));
    pthread_mutex_lock(&gate);
    pthread_create(&t, 0, waits, (void *)6);
    pthread_detach(t);
    NUMBER(pthread_tryjoin_np(t, &value));
    pthread_mutex_unlock(&gate);
}

static void mutexes(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    NUMBER(pthread_mutexattr_settype(&a, 77));
    NUMBER(pthread_mutexattr_setpshared(&a, 77));
    NUMBER(pthread_mutexattr_setrobust(&a, 77));
    NUMBER(pthread_mutexattr_setprotocol(&a, 77));
    NUMBER(pthread_mutexattr_setprioceiling(&a, 1000));
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (int i = 0; i < 3; i++) {
        pthread_mutex_t m;
        pthread_mutexattr_settype(&a, types[i]);
        NUMBER(pthread_mutex_init(&m, &a));
        NUMBER(pthread_mutex_lock(&m));
        NUMBER(pthread_mutex_trylock(&m));
        if (i) NUMBER(pthread_mutex_lock(&m));
        NUMBER(pthread_mutex_destroy(&m));
        NUMBER(pthread_mutex_unlock(&m));
        if (i == 1) NUMBER(pthread_mutex_unlock(&m));
        if (i == 1) NUMBER(pthread_mutex_unlock(&m));
        if (i) NUMBER(pthread_mutex_unlock(&m));
        NUMBER(pthread_mutex_consistent(&m));
        NUMBER(pthread_mutex_destroy(&m));
    }
    int ceiling = -1;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    NUMBER(pthread_mutex_getprioceiling(&m, &ceiling));
    NUMBER(pthread_mutex_setprioceiling(&m, 5, &ceiling));
}

static void *tries_lock(void *m) {
    return (void *)(long)pthread_mutex_trylock(m);
}

static void robust(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_t m;
    pthread_mutex_init(&m, &a);
    pthread_t t;
    void *value;
    pthread_create(&t, 0, tries_lock, &m);
    pthread_join(t, &value);
    say("in the thread: %ld", (long)value);
    NUMBER(pthread_mutex_trylock(&m));
    NUMBER(pthread_mutex_consistent(&m));
    NUMBER(pthread_mutex_consistent(&m));
    NUMBER(pthread_mutex_unlock(&m));
    pthread_create(&t, 0, tries_lock, &m);
    pthread_join(t, &value);
    NUMBER(pthread_mutex_lock(&m));
    NUMBER(pthread_mutex_unlock(&m));
    NUMBER(pthread_mutex_lock(&m));
    NUMBER(pthread_mutex_trylock(&m));
    NUMBER(pthread_mutex_destroy(&m));
}

static pthread_mutex_t checked;

static void in_fork(void) {
    NUMBER(pthread_mutex_trylock(&checked));
    NUMBER(pthread_mutex_unlock(&checked));
}

static void forked(void) {
    // The child is another thread than the one that holds it.
    static const int types[] = {PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE};
    for (int i = 0; i < 2; i++) {
        pthread_mutexattr_t a;
        pthread_mutexattr_init(&a);
        pthread_mutexattr_settype(&a, types[i]);
        pthread_mutex_init(&checked, &a);
        pthread_mutex_lock(&checked);
        in_child(in_fork);
        NUMBER(pthread_mutex_unlock(&checked));
    }
}

static void protect(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    NUMBER(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT));
    int ceiling = -1;
    NUMBER(pthread_mutexattr_getprioceiling(&a, &ceiling));
    say("ceiling %d", ceiling);
    NUMBER(pthread_mutexattr_setprioceiling(&a, 7));
    pthread_mutex_t m;
    NUMBER(pthread_mutex_init(&m, &a));
    NUMBER(pthread_mutex_getprioceiling(&m, &ceiling));
    say("ceiling %d", ceiling);
    NUMBER(pthread_mutex_destroy(&m));
}

static void inherit(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    NUMBER(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT));
    pthread_mutex_t m;
    NUMBER(pthread_mutex_init(&m, &a));
    NUMBER(pthread_mutex_lock(&m));
    NUMBER(pthread_mutex_trylock(&m));
    NUMBER(pthread_mutex_unlock(&m));
    int ceiling;
    NUMBER(pthread_mutex_getprioceiling(&m, &ceiling));
    NUMBER(pthread_mutex_destroy(&m));
}

static void others(void) {
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    NUMBER(pthread_rwlock_rdlock(&l));
    NUMBER(pthread_rwlock_tryrdlock(&l));
    NUMBER(pthread_rwlock_trywrlock(&l));
    NUMBER(pthread_rwlock_unlock(&l));
    NUMBER(pthread_rwlock_unlock(&l));
    NUMBER(pthread_rwlock_wrlock(&l));
    NUMBER(pthread_rwlock_rdlock(&l));
    NUMBER(pthread_rwlock_wrlock(&l));
    NUMBER(pthread_rwlock_trywrlock(&l));
    NUMBER(pthread_rwlock_unlock(&l));
    NUMBER(pthread_rwlock_destroy(&l));
    pthread_rwlockattr_t r;
    pthread_rwlockattr_init(&r);
    NUMBER(pthread_rwlockattr_setkind_np(&r, 77));
    NUMBER(pthread_rwlockattr_setpshared(&r, 77));
    pthread_barrier_t b;
    NUMBER(pthread_barrier_init(&b, 0, 0));
    NUMBER(pthread_barrier_init(&b, 0, 1));
    NUMBER(pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD);
    NUMBER(pthread_barrier_destroy(&b));
    pthread_condattr_t c;
    pthread_condattr_init(&c);
    NUMBER(pthread_condattr_setclock(&c, CLOCK_PROCESS_CPUTIME_ID));
    NUMBER(pthread_condattr_setclock(&c, 77));
    NUMBER(pthread_condattr_setclock(&c, CLOCK_MONOTONIC));
    NUMBER(pthread_condattr_setpshared(&c, 77));
    pthread_spinlock_t s;
    NUMBER(pthread_spin_init(&s, 0));
    NUMBER(pthread_spin_lock(&s));
    NUMBER(pthread_spin_trylock(&s));
    NUMBER(pthread_spin_unlock(&s));
    mtx_t m;
    CHECK(mtx_init(&m, mtx_plain | mtx_recursive));
    CHECK(mtx_lock(&m));
    CHECK(mtx_trylock(&m));
    CHECK(mtx_unlock(&m));
    CHECK(mtx_unlock(&m));
    CHECK(mtx_init(&m, mtx_plain));
    CHECK(mtx_lock(&m));
    CHECK(mtx_trylock(&m));
    CHECK(mtx_unlock(&m));
}

static void *tells_policy(void *at) {
    struct sched_param p;
    int policy = -1;
    (void)at;
    int r = pthread_getschedparam(pthread_self(), &policy, &p);
    say("in the thread: %d, policy %d, priority %d, %d", r, policy, p.sched_priority, sched_getscheduler(0));
    return 0;
}

static void schedules(void) {
    int policy = -1;
    struct sched_param p = {77};
    NUMBER(pthread_getschedparam(pthread_self(), &policy, &p));
    say("policy %d, priority %d", policy, p.sched_priority);
    p.sched_priority = 0;
    NUMBER(pthread_setschedparam(pthread_self(), SCHED_OTHER, &p));
    NUMBER(pthread_setschedparam(pthread_self(), SCHED_BATCH, &p));
    NUMBER(pthread_setschedparam(pthread_self(), 77, &p));
    NUMBER(pthread_setschedparam(pthread_self(), SCHED_FIFO, &p));
    NUMBER(pthread_setschedprio(pthread_self(), 3));
    NUMBER(pthread_getschedparam(pthread_self(), &policy, &p));
    say("policy %d, priority %d", policy, p.sched_priority);
    pthread_attr_t a;
    pthread_attr_init(&a);
    NUMBER(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED));
    NUMBER(pthread_attr_setschedpolicy(&a, SCHED_OTHER));
    pthread_t t;
    pthread_create(&t, &a, tells_policy, 0);
    NUMBER(pthread_join(t, 0));
    pthread_create(&t, 0, tells_policy, 0);
    NUMBER(pthread_join(t, 0));
    p.sched_priority = 0;
    NUMBER(pthread_setschedparam(pthread_self(), SCHED_OTHER, &p));
}

// struct futex_waitv.
struct waited {
    uint64_t value, at;
    uint32_t flags, reserved;
};

static long waitv(struct waited *words, unsigned n, unsigned flags, struct timespec *until, int clock) {
    return syscall(449, words, n, flags, until, clock);
}

static uint32_t word[2] = {5, 6};

static void *wakes_second(void *at) {
    (void)at;
    while (syscall(SYS_futex, &word[1], 129, 1, 0, 0, 0) == 0) usleep(1000);
    return 0;
}

// Waits for both words; `second` is what the second is said to be.
static void both_of(const char *name, uint32_t first, uint32_t second, struct timespec *until, int clock) {
    struct waited both[2] = {{first, (uintptr_t)&word[0], 130, 0}, {second, (uintptr_t)&word[1], 130, 0}};
    NAMED(name, waitv(both, 2, 0, until, clock));
}

static void several(void) {
    struct timespec past = {0, 1}, odd = {0, 1000000000}, before = {-1, 0};
    both_of("first differs", 4, 6, 0, 1);
    both_of("second differs", 5, 7, 0, 1);
    both_of("past", 5, 6, &past, CLOCK_MONOTONIC);
    both_of("past, real time", 5, 6, &past, CLOCK_REALTIME);
    both_of("past, first differs", 4, 6, &past, CLOCK_MONOTONIC);
    both_of("another clock", 5, 6, &past, CLOCK_BOOTTIME);
    both_of("odd time", 5, 6, &odd, CLOCK_MONOTONIC);
    both_of("negative time", 5, 6, &before, CLOCK_MONOTONIC);
    both_of("time that is not there", 5, 6, (struct timespec *)8, CLOCK_MONOTONIC);
    both_of("no time, another clock", 4, 6, 0, 77);
    struct waited w = {4, (uintptr_t)&word[0], 130, 0};
    NAMED("one", waitv(&w, 1, 0, 0, 1));
    NAMED("flags", waitv(&w, 1, 1, 0, 1));
    NAMED("none", waitv(&w, 0, 0, 0, 1));
    NAMED("too many", waitv(&w, 129, 0, 0, 1));
    NAMED("no array", waitv(0, 1, 0, 0, 1));
    NAMED("array that is not there", waitv((void *)8, 1, 0, 0, 1));
    w.flags = 2;
    NAMED("shared", waitv(&w, 1, 0, 0, 1));
    static const uint32_t flags[] = {0, 1, 3, 128, 129, 131, 256 + 2, 16 + 2, 64 + 2};
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
        char name[40];
        sprintf(name, "word with flags %u", flags[i]);
        w.flags = flags[i];
        NAMED(name, waitv(&w, 1, 0, 0, 1));
    }
    w = (struct waited){4, (uintptr_t)&word[0], 130, 1};
    NAMED("reserved", waitv(&w, 1, 0, 0, 1));
    w = (struct waited){1ull << 32 | 5, (uintptr_t)&word[0], 130, 0};
    NAMED("long value", waitv(&w, 1, 0, 0, 1));
    w = (struct waited){4, (uintptr_t)&word[0] + 1, 130, 0};
    NAMED("odd address", waitv(&w, 1, 0, 0, 1));
    w = (struct waited){4, 8, 130, 0};
    NAMED("private word that is not there", waitv(&w, 1, 0, 0, 1));
    w = (struct waited){4, 8, 2, 0};
    NAMED("shared word that is not there", waitv(&w, 1, 0, 0, 1));
    w = (struct waited){4, 1ull << 63, 130, 0};
    NAMED("word of the kernel", waitv(&w, 1, 0, 0, 1));
    struct waited lacks[2] = {{4, (uintptr_t)&word[0], 130, 0}, {4, 8, 130, 0}};
    NAMED("first differs, second is not there", waitv(lacks, 2, 0, 0, 1));
    lacks[0].value = 5;
    NAMED("second is not there", waitv(lacks, 2, 0, 0, 1));
    lacks[0].value = 4, lacks[1].flags = 2;
    NAMED("first differs, second is shared and not there", waitv(lacks, 2, 0, 0, 1));
    pthread_t t;
    pthread_create(&t, 0, wakes_second, 0);
    both_of("woken", 5, 6, 0, 1);
    pthread_join(t, 0);
    struct waited twice[2] = {{6, (uintptr_t)&word[1], 130, 0}, {6, (uintptr_t)&word[1], 130, 0}};
    pthread_create(&t, 0, wakes_second, 0);
    long r = waitv(twice, 2, 0, 0, 1);
    pthread_join(t, 0);
    say("woken of the same word: %s", r == 0 || r == 1 ? "one" : "neither");
}

static const struct group groups[] = {
    {"joins", joins},     {"tries", tries},     {"mutexes", mutexes}, {"robust", robust}, {"forked", forked},
    {"protect", protect}, {"inherit", inherit}, {"others", others},   {"schedules", schedules},
    {"several", several}, {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
