/*
 * Raw futexes with priority inheritance, taken and given back as glibc does: without the kernel where nobody else is about.
 * calls:  what FUTEX_LOCK_PI, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI answer and what becomes of the word, as Linux does.
 * buggy:  one thread takes a futex and then a mutex, another one the mutex and then the futex.
 * fixed:  both take the futex first.
 * circle: two futexes in crossing order. The kernel refuses the wait that would close the circle; the one who is refused
 *         gives back what it has and tries again.
 * died:   a thread ends as the owner while another one waits, which gets the lock and is told.
 * count:  two threads count under the lock.
 */
#include "t.h"
#include "futex.h"

#define FREE 0

static volatile int lock_a, lock_b;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static int self(void)
{
    return syscall(SYS_gettid);
}

static long locked(volatile int *word, int op, const struct timespec *limit)
{
    return futex(word, op, 0, limit, NULL, 0);
}

static int take(volatile int *word)
{
    int expected = FREE;
    if (__atomic_compare_exchange_n(word, &expected, self(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 0;
    return locked(word, FUTEX_LOCK_PI, NULL) == 0 ? 0 : errno;
}

static void give(volatile int *word)
{
    int expected = self();
    if (!__atomic_compare_exchange_n(word, &expected, FREE, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        MUST(locked(word, FUTEX_UNLOCK_PI, NULL));
}

static void fails_(long result, int error, int line)
{
    if (result != -1 || errno != error) {
        fprintf(stderr, "line %d: result %ld, errno %d instead of %d\n", line, result, errno, error);
        abort();
    }
}
#define FAILS(call, error) fails_((call), error, __LINE__)

static int holder;

static void *stranger(void *arg)
{
    struct timespec past = { 1, 0 }, wrong = { 1, -1 };
    (void)arg;
    FAILS(locked(&lock_a, FUTEX_TRYLOCK_PI, NULL), EAGAIN);
    assert(lock_a == (int)(holder | FUTEX_WAITERS));
    FAILS(locked(&lock_a, FUTEX_LOCK_PI, &past), ETIMEDOUT);
    FAILS(locked(&lock_a, FUTEX_LOCK_PI, &wrong), EINVAL);
    FAILS(locked(&lock_a, FUTEX_UNLOCK_PI, NULL), EPERM);
    assert(lock_a == (int)(holder | FUTEX_WAITERS));
    return NULL;
}

static void *next(void *arg)
{
    (void)arg;
    MUST(locked(&lock_a, FUTEX_LOCK_PI, NULL));
    assert((lock_a & FUTEX_TID_MASK) == self());
    MUST(locked(&lock_a, FUTEX_UNLOCK_PI, NULL));
    return NULL;
}

static void calls(void)
{
    const int nobody = 0x3ffffff0;
    holder = self();
    MUST(locked(&lock_a, FUTEX_LOCK_PI, NULL));
    assert(lock_a == holder);
    FAILS(locked(&lock_a, FUTEX_LOCK_PI, NULL), EDEADLK);
    FAILS(locked(&lock_a, FUTEX_TRYLOCK_PI, NULL), EDEADLK);
    join(go(stranger, NULL));
    MUST(locked(&lock_a, FUTEX_UNLOCK_PI, NULL));
    assert(lock_a == FREE);
    FAILS(locked(&lock_a, FUTEX_UNLOCK_PI, NULL), EPERM);
    MUST(locked(&lock_a, FUTEX_TRYLOCK_PI, NULL));
    pthread_t t = go(next, NULL);
    MUST(locked(&lock_a, FUTEX_UNLOCK_PI, NULL));
    join(t);
    assert(lock_a == FREE);
    lock_a = nobody;
    FAILS(locked(&lock_a, FUTEX_LOCK_PI, NULL), ESRCH);
    assert(lock_a == (int)(nobody | FUTEX_WAITERS));
    lock_a = FUTEX_WAITERS;
    MUST(locked(&lock_a, FUTEX_LOCK_PI, NULL));
    assert(lock_a == holder);
    lock_a = FUTEX_OWNER_DIED;
    MUST(locked(&lock_a, FUTEX_TRYLOCK_PI, NULL));
    assert(lock_a == (holder | FUTEX_OWNER_DIED));
    MUST(locked(&lock_a, FUTEX_UNLOCK_PI, NULL));
    assert(lock_a == FREE);
    FAILS(locked((volatile int *)((volatile char *)&lock_a + 1), FUTEX_LOCK_PI, NULL), EINVAL);
    FAILS(locked(&lock_a, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME, NULL), ENOSYS);
}

static void *futex_first(void *arg)
{
    (void)arg;
    MUST(take(&lock_a));
    MUST(pthread_mutex_lock(&mutex));
    counter++;
    MUST(pthread_mutex_unlock(&mutex));
    give(&lock_a);
    return NULL;
}

static void *mutex_first(void *arg)
{
    (void)arg;
    MUST(pthread_mutex_lock(&mutex));
    MUST(take(&lock_a));
    counter++;
    give(&lock_a);
    MUST(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void *crossing(void *arg)
{
    volatile int *first = arg, *second = arg == (void *)&lock_a ? &lock_b : &lock_a;
    for (;;) {
        MUST(take(first));
        MUST(sched_yield());
        int error = take(second);
        if (error == 0)
            break;
        assert(error == EDEADLK);
        give(first);
    }
    counter++;
    give(second);
    give(first);
    return NULL;
}

static void *counts(void *arg)
{
    (void)arg;
    MUST(take(&lock_a));
    int seen = counter;
    MUST(sched_yield());
    counter = seen + 1;
    give(&lock_a);
    return NULL;
}

static void *ends(void *arg)
{
    (void)arg;
    MUST(take(&lock_a));
    MUST(sched_yield());
    return NULL;
}

static void two(void *(*one)(void *), void *(*other)(void *), volatile int *a, volatile int *b)
{
    pthread_t t = go(one, (void *)a), u = go(other, (void *)b);
    join(t);
    join(u);
    assert(counter == 2 && (lock_a & FUTEX_TID_MASK) == 0 && (lock_b & FUTEX_TID_MASK) == 0);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "calls")) {
        calls();
    } else if (arg_is(argc, argv, "circle")) {
        two(crossing, crossing, &lock_a, &lock_b);
    } else if (arg_is(argc, argv, "count")) {
        two(counts, counts, NULL, NULL);
    } else if (arg_is(argc, argv, "died")) {
        pthread_t t = go(ends, NULL);
        int error = take(&lock_a);
        /* It came too late to wait: the owner is gone. */
        assert(error == 0 || error == ESRCH);
        if (error == 0)
            give(&lock_a);
        join(t);
    } else {
        two(futex_first, arg_is(argc, argv, "buggy") ? mutex_first : futex_first, NULL, NULL);
    }
    return 0;
}
