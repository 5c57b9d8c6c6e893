/* Algorithms that need a fence on x86: with one they are explored completely, without one they are not (x86 may let a load come before an
 * earlier store).  "dekker", "peterson": his lock, "deque": a thread takes at one end of a work-stealing deque what another one steals at
 * the other (Chase, Lev 2005; Le, Pop, Cohen, Nardelli 2013).  The second argument says what is between the store and the load: "mfence",
 * "fence" (of C11), "xchg" (the store is locked), "other" (a locked instruction on other memory), "cpuid", "call" (a call of the kernel that takes a
 * lock), "lfence" (none: it orders loads), "none".  "message": a store of data, one of a flag, the other side loads both: x86 keeps that. */
#include "t.h"
#include <cpuid.h>
#include <sched.h>

static enum { NONE, MFENCE, FENCE, XCHG, OTHER, CPUID, CALL, LFENCE } how;
static int x, y, r1, r2, wants[2], turn, other, data, flag;
static volatile int within;
static long top, bottom;
static int items[4], taken[4];

/* Each way as code of its own: what it is is known when it is compiled, as in programs. */
#define STORE(at, value) (way == XCHG ? (void)__atomic_exchange_n(at, value, __ATOMIC_SEQ_CST) : __atomic_store_n(at, value, __ATOMIC_RELEASE))

static inline __attribute__((always_inline)) void between(int way)
{
    unsigned a, b, c, d;
    switch (way) {
    case MFENCE: __asm__ volatile("mfence" ::: "memory"); break;
    case FENCE: __atomic_thread_fence(__ATOMIC_SEQ_CST); break;
    case OTHER: __atomic_fetch_add(&other, 1, __ATOMIC_RELAXED); break;
    case CPUID: __cpuid(0, a, b, c, d); break;
    case CALL: sched_yield(); break;
    case LFENCE: __asm__ volatile("lfence" ::: "memory"); break;
    }
}

static inline __attribute__((always_inline)) void dekker(int me, int way)
{
    STORE(me ? &y : &x, 1);
    between(way);
    int found = __atomic_load_n(me ? &x : &y, __ATOMIC_ACQUIRE);
    *(me ? &r2 : &r1) = found;
}

static inline __attribute__((always_inline)) void peterson(int me, int way)
{
    __atomic_store_n(&wants[me], 1, __ATOMIC_RELEASE);
    STORE(&turn, 1 - me);
    between(way);
    while (__atomic_load_n(&wants[1 - me], __ATOMIC_ACQUIRE) && __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me) {}
    assert(++within == 1);
    within--;
    __atomic_store_n(&wants[me], 0, __ATOMIC_RELEASE);
}

/* One of two items is taken at the bottom. */
static inline __attribute__((always_inline)) void take(int way)
{
    long b = __atomic_load_n(&bottom, __ATOMIC_RELAXED) - 1;
    STORE(&bottom, b);
    between(way);
    long t = __atomic_load_n(&top, __ATOMIC_RELAXED);
    if (t > b) {
        __atomic_store_n(&bottom, b + 1, __ATOMIC_RELAXED);
        return;
    }
    int item = items[b];
    if (t == b) {
        int mine = __atomic_compare_exchange_n(&top, &t, t + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        __atomic_store_n(&bottom, b + 1, __ATOMIC_RELAXED);
        if (!mine)
            return;
    }
    assert(__atomic_fetch_add(&taken[item], 1, __ATOMIC_RELAXED) == 0);
}

static void steal(void)
{
    long t = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    long b = __atomic_load_n(&bottom, __ATOMIC_ACQUIRE);
    if (t >= b)
        return;
    int item = items[t];
    if (__atomic_compare_exchange_n(&top, &t, t + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        assert(__atomic_fetch_add(&taken[item], 1, __ATOMIC_RELAXED) == 0);
}

static void message(int me)
{
    if (me) {
        __atomic_store_n(&data, 5, __ATOMIC_RELAXED);
        __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    } else if (__atomic_load_n(&flag, __ATOMIC_ACQUIRE)) {
        assert(__atomic_load_n(&data, __ATOMIC_RELAXED) == 5);
    }
}

#define WAYS(name, does) \
    static void *name(void *arg) \
    { \
        int me = arg != NULL; \
        (void)me; \
        switch (how) { \
        case NONE: does(NONE); break; \
        case MFENCE: does(MFENCE); break; \
        case FENCE: does(FENCE); break; \
        case XCHG: does(XCHG); break; \
        case OTHER: does(OTHER); break; \
        case CPUID: does(CPUID); break; \
        case CALL: does(CALL); break; \
        case LFENCE: does(LFENCE); break; \
        } \
        return NULL; \
    }

#define DEKKER(way) dekker(me, way)
#define PETERSON(way) peterson(me, way)
#define DEQUE(way) if (me) { take(way); take(way); } else { steal(); steal(); }
#define MESSAGE(way) message(me)
WAYS(run_dekker, DEKKER)
WAYS(run_peterson, PETERSON)
WAYS(run_deque, DEQUE)
WAYS(run_message, MESSAGE)

int main(int argc, char **argv)
{
    static const char *const ways[] = { "none", "mfence", "fence", "xchg", "other", "cpuid", "call", "lfence" };
    pthread_t a, b;
    MUST(argc != 3);
    while (strcmp(ways[how], argv[2]))
        how++;
    void *(*run)(void *) = arg_is(argc, argv, "dekker") ? run_dekker : arg_is(argc, argv, "peterson") ? run_peterson
        : arg_is(argc, argv, "deque") ? run_deque : run_message;
    items[0] = 0, items[1] = 1, bottom = 2;
    MUST(pthread_create(&a, NULL, run, NULL));
    MUST(pthread_create(&b, NULL, run, &b));
    MUST(pthread_join(a, NULL));
    MUST(pthread_join(b, NULL));
    if (run == run_dekker)
        assert(r1 || r2);
    return 0;
}
