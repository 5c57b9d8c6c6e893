/* Five threads that each do one thing whose order nobody can tell: one execution, not 5!. Where somebody can tell, as many as there
   are answers. */
#include "t.h"
#include <sys/eventfd.h>

#define N 5

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t none, some;
static pthread_barrier_t meeting;
static int counter, made;
static const char *what;

static void make(void)
{
    made++;
}

static int is(const char *word)
{
    return strcmp(what, word) == 0;
}

static void *one(void *unused)
{
    int value;

    if (is("exit"))
        pthread_exit(NULL);
    if (is("once") || is("first"))
        MUST(pthread_once(&once, make));
    if (is("value"))
        MUST(sem_getvalue(&none, &value));
    if (is("trywait") || is("posted"))
        assert(sem_trywait(&none) != 0 ? errno == EAGAIN : is("posted"));
    if (is("trylock"))
        assert(pthread_mutex_trylock(&m) == EBUSY);
    if (is("tryspin"))
        assert(pthread_spin_trylock(&spin) == EBUSY);
    if (is("trywrite"))
        assert(pthread_rwlock_trywrlock(&rw) == EBUSY);
    if (is("timed")) {
        struct timespec soon;
        MUST(clock_gettime(CLOCK_REALTIME, &soon));
        assert(pthread_mutex_timedlock(&m, &soon) == ETIMEDOUT);
    }
    if (is("signal"))
        MUST(pthread_cond_signal(&c));
    if (is("broadcast"))
        MUST(pthread_cond_broadcast(&c));
    if (is("eventfd") || is("woken"))
        MUST(eventfd_write(counter, 1));
    if (is("enough") || is("short"))
        MUST(sem_wait(&some));
    if (is("pool") || is("small-pool"))
        for (int i = 0; i < 2; i++) {
            MUST(sem_wait(&some));
            MUST(sem_post(&some));
        }
    if (is("barrier"))
        for (int i = 0; i < 3; i++)
            pthread_barrier_wait(&meeting);
    if (is("last") && pthread_barrier_wait(&meeting) == PTHREAD_BARRIER_SERIAL_THREAD)
        MUST(sem_post(&some));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t[N];
    eventfd_t sum = 0;

    if (argc < 2)
        return 2;
    what = argv[1];
    if (is("eventfd") || is("woken"))
        counter = eventfd(0, 0);
    assert(counter >= 0);
    MUST(sem_init(&none, 0, 0));
    MUST(sem_init(&some, 0, is("short") || is("small-pool") ? N - 1 : N));
    MUST(pthread_barrier_init(&meeting, NULL, N));
    MUST(pthread_spin_init(&spin, 0));
    if (!is("first"))
        MUST(pthread_once(&once, make));
    MUST(pthread_mutex_lock(&m));
    MUST(pthread_spin_lock(&spin));
    MUST(pthread_rwlock_rdlock(&rw));
    for (int i = 0; i < N; i++)
        t[i] = go(one, NULL);
    if (is("posted"))
        MUST(sem_post(&none));
    if (is("woken"))
        MUST(eventfd_read(counter, &sum));
    for (int i = 0; i < N; i++)
        join(t[i]);
    if (is("eventfd")) {
        MUST(eventfd_read(counter, &sum));
        assert(sum == N);
    }
    assert(made == 1);
    return 0;
}
