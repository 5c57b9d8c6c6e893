/* Lock-free structures with C11 atomics. The first argument names one, or a way to break it.
 * "ticket": a ticket lock; "-plain": the ticket is taken by a load and a store; "-early": the next one is served before the work is done.
 * "seqlock": two words that are read together; "-once": the reader does not try again; "-early": the writer is done before it has written
 * the second word; "-even": it does not say that it is at it.
 * "push": threads push to a Treiber stack. "stack": one pushes, one pops, one does both; "-blind": who pushes does not look whether the head is still the one that it has
 * linked; "-reuse": nodes come back while another thread is about to take them off (ABA); "-counted": the same with a count beside the
 * head.
 * "queue": a Michael-Scott queue, two put; "queue-take": one puts and one takes; "-blind": the link is stored, not compared; "-early": the tail moves before there
 * is a link to the node; "queue-three": three threads.
 * "deque": a Chase-Lev deque with one item; "-blind": the owner takes the last item without a comparison; "-top": it does not look at the top again.
 * "once": double-checked locking; "-early": the pointer comes before what it points to; "-again": there is no second look.
 * "wide": sixteen bytes at once by atomic instructions; "-moved": by plain ones; "-halves": written half by half. */
#include "t.h"
#include <stdatomic.h>

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define SEQ_CST memory_order_seq_cst

enum way { RIGHT, PLAIN, EARLY, ONCE, EVEN, BLIND, AGAIN, HALVES, TOP, COUNTED };
/* The way is known where a structure is compiled, as in programs. */
#define INLINE static inline __attribute__((always_inline))

/* A ticket lock. */
static atomic_int next_ticket, now_served;
static int inside, work;

INLINE void ticket(enum way way)
{
    int mine;
    if (way == PLAIN) {
        mine = atomic_load_explicit(&next_ticket, RELAXED);
        atomic_store_explicit(&next_ticket, mine + 1, RELAXED);
    } else {
        mine = atomic_fetch_add_explicit(&next_ticket, 1, RELAXED);
    }
    while (atomic_load_explicit(&now_served, ACQUIRE) != mine) {}
    if (way == EARLY)
        atomic_store_explicit(&now_served, mine + 1, RELEASE);
    assert(++inside == 1);
    work++;
    inside--;
    if (way != EARLY)
        atomic_store_explicit(&now_served, mine + 1, RELEASE);
}

/* A sequence lock. */
static atomic_int sequence;
static atomic_long left, right;

INLINE void seqlock_write(enum way way)
{
    int n = atomic_load_explicit(&sequence, RELAXED);
    if (way != EVEN) {
        atomic_store_explicit(&sequence, n + 1, RELAXED);
        atomic_thread_fence(RELEASE);
    }
    atomic_store_explicit(&left, 1, RELAXED);
    if (way == EARLY)
        atomic_store_explicit(&sequence, n + 2, RELEASE);
    atomic_store_explicit(&right, 1, RELAXED);
    if (way != EARLY)
        atomic_store_explicit(&sequence, n + 2, RELEASE);
}

INLINE void seqlock_read(enum way way)
{
    for (;;) {
        int n = atomic_load_explicit(&sequence, ACQUIRE);
        if (n & 1)
            continue;
        long l = atomic_load_explicit(&left, RELAXED), r = atomic_load_explicit(&right, RELAXED);
        atomic_thread_fence(ACQUIRE);
        if (way == ONCE || atomic_load_explicit(&sequence, RELAXED) == n) {
            assert(l == r);
            return;
        }
    }
}

/* A stack after Treiber. */
struct node {
    struct node *next;
    int taken;
};
static _Atomic(struct node *) head;
static struct node nodes[4];

INLINE void push(struct node *node, enum way way)
{
    struct node *first = atomic_load_explicit(&head, RELAXED);
    do
        node->next = first;
    while (way == BLIND ? (atomic_store_explicit(&head, node, RELEASE), 0)
                        : !atomic_compare_exchange_weak_explicit(&head, &first, node, RELEASE, RELAXED));
}

static struct node *pop(void)
{
    struct node *first = atomic_load_explicit(&head, ACQUIRE);
    while (first && !atomic_compare_exchange_weak_explicit(&head, &first, first->next, ACQUIRE, ACQUIRE)) {}
    return first;
}

static void take_off(struct node *node)
{
    if (node)
        node->taken++;
}

/* The same with a count, compared together with the head. */
static struct counted {
    struct node *first;
    long count;
} __attribute__((aligned(16))) counted;

static _Bool exchange(struct counted *old, struct counted new)
{
    struct counted found;
    _Bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(counted), "=a"(found.first), "=d"(found.count)
                     : "2"(old->first), "3"(old->count), "b"(new.first), "c"(new.count)
                     : "memory");
    *old = found;
    return done;
}

static struct node *pop_counted(void)
{
    struct counted old = { 0 };
    exchange(&old, old);
    while (old.first && !exchange(&old, (struct counted){ old.first->next, old.count + 1 })) {}
    return old.first;
}

static void push_counted(struct node *node)
{
    struct counted old = { 0 };
    exchange(&old, old);
    do
        node->next = old.first;
    while (!exchange(&old, (struct counted){ node, old.count + 1 }));
}

/* Takes two and puts the first one back. */
INLINE void reuses(enum way way)
{
    struct node *one = way == COUNTED ? pop_counted() : pop(), *two = way == COUNTED ? pop_counted() : pop();
    if (two)
        two->taken++;
    if (one)
        way == COUNTED ? push_counted(one) : push(one, RIGHT);
}

/* A queue after Michael and Scott. The first node is a dummy. */
static struct link {
    _Atomic(struct link *) next;
    int value;
} links[4];
static _Atomic(struct link *) first_link = &links[0], last_link = &links[0];

INLINE void put(struct link *link, enum way way)
{
    for (;;) {
        struct link *last = atomic_load_explicit(&last_link, ACQUIRE);
        struct link *next = atomic_load_explicit(&last->next, ACQUIRE);
        if (next) {
            atomic_compare_exchange_strong(&last_link, &last, next);
            continue;
        }
        if (way == EARLY)
            atomic_compare_exchange_strong(&last_link, &last, link);
        if (way == BLIND)
            atomic_store_explicit(&last->next, link, RELEASE);
        else if (!atomic_compare_exchange_strong(&last->next, &next, link))
            continue;
        if (way != EARLY)
            atomic_compare_exchange_strong(&last_link, &last, link);
        return;
    }
}

static int take(void)
{
    for (;;) {
        struct link *first = atomic_load_explicit(&first_link, ACQUIRE);
        struct link *last = atomic_load_explicit(&last_link, ACQUIRE);
        struct link *next = atomic_load_explicit(&first->next, ACQUIRE);
        if (!next)
            return 0;
        if (first == last) {
            atomic_compare_exchange_strong(&last_link, &last, next);
            continue;
        }
        int value = next->value;
        if (atomic_compare_exchange_strong(&first_link, &first, next))
            return value;
    }
}

static void put_two(void)
{
    put(&links[1], RIGHT);
    put(&links[2], RIGHT);
}

static void take_two(void)
{
    int a = take(), b = take();
    assert(a ? a == 1 && (!b || b == 2) : b < 2);
}

/* A deque after Chase and Lev, with one item in it. */
static atomic_long top, bottom = 1;
static atomic_int got;

INLINE void deque_take(enum way way)
{
    long b = atomic_load_explicit(&bottom, RELAXED) - 1;
    atomic_store_explicit(&bottom, b, RELAXED);
    atomic_thread_fence(SEQ_CST);
    long t = way == TOP ? 0 : atomic_load_explicit(&top, RELAXED);
    if (t <= b) {
        if (way == BLIND || way == TOP || atomic_compare_exchange_strong(&top, &t, t + 1))
            atomic_fetch_add_explicit(&got, 1, RELAXED);
    }
    atomic_store_explicit(&bottom, b + 1, RELAXED);
}

static void deque_steal(void)
{
    long t = atomic_load_explicit(&top, ACQUIRE);
    atomic_thread_fence(SEQ_CST);
    if (t < atomic_load_explicit(&bottom, ACQUIRE) && atomic_compare_exchange_strong(&top, &t, t + 1))
        atomic_fetch_add_explicit(&got, 1, RELAXED);
}

/* Something that is made when it is first needed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thing { int value; } thing;
static _Atomic(struct thing *) made;
static int times;

INLINE void once(enum way way)
{
    struct thing *there = atomic_load_explicit(&made, ACQUIRE);
    if (!there) {
        MUST(pthread_mutex_lock(&lock));
        there = way == AGAIN ? NULL : atomic_load_explicit(&made, RELAXED);
        if (!there) {
            there = &thing;
            times++;
            if (way == EARLY)
                atomic_store_explicit(&made, there, RELEASE);
            there->value = 5;
            if (way != EARLY)
                atomic_store_explicit(&made, there, RELEASE);
        }
        MUST(pthread_mutex_unlock(&lock));
    }
    assert(there->value == 5);
}

/* Sixteen bytes. */
typedef long pair __attribute__((vector_size(16)));
static volatile pair both;

INLINE void wide_write(enum way way)
{
    if (way == HALVES)
        ((volatile long *)&both)[0] = 1, ((volatile long *)&both)[1] = 1;
    else
        both = (pair){ 1, 1 };
}

static void wide_read(void)
{
    pair found = both;
    assert(found[0] == found[1]);
}

static void wide_exchange(struct counted old, struct counted new)
{
    exchange(&old, new);
    assert((long)old.first == old.count);
}

static int how_many(void)
{
    int n = 0;
    for (struct node *node = head; node; node = node->next)
        n++;
    return n;
}

static int all_taken(void)
{
    for (int n = 0; n < 4; n++)
        assert(nodes[n].taken <= 1);
    for (struct node *node = head ? head : counted.first; node; node = node->next)
        assert(!node->taken);
    return 1;
}

static int all_queued(void)
{
    int n = 0;
    for (struct link *link = first_link; (link = link->next);)
        n++;
    return n;
}

/* Code of threads: `me` is their number. */
#define BODY(name, does) static void *name(void *arg) { long me = (long)arg; (void)me; does; return NULL; }
#define FORMER(me, one, other) do { if ((me) == 0) { one; } else { other; } } while (0)
BODY(run_ticket, ticket(RIGHT))
BODY(run_ticket_plain, ticket(PLAIN))
BODY(run_ticket_early, ticket(EARLY))
BODY(run_seqlock, FORMER(me, seqlock_write(RIGHT), seqlock_read(RIGHT)))
BODY(run_seqlock_once, FORMER(me, seqlock_write(RIGHT), seqlock_read(ONCE)))
BODY(run_seqlock_early, FORMER(me, seqlock_write(EARLY), seqlock_read(RIGHT)))
BODY(run_seqlock_even, FORMER(me, seqlock_write(EVEN), seqlock_read(RIGHT)))
BODY(run_push, push(&nodes[me], RIGHT))
BODY(run_push_blind, push(&nodes[me], BLIND))
BODY(run_stack, FORMER(me, push(&nodes[0], RIGHT), take_off(pop())))
BODY(run_reuse, FORMER(me, reuses(RIGHT), take_off(pop())))
BODY(run_counted, FORMER(me, reuses(COUNTED), take_off(pop_counted())))
BODY(run_queue, put(&links[1 + me], RIGHT))
BODY(run_queue_blind, put(&links[1 + me], BLIND))
BODY(run_queue_early, FORMER(me, put(&links[1], EARLY), put(&links[2], EARLY)))
BODY(run_queue_take, FORMER(me, put_two(), take_two()))
BODY(run_queue_three, FORMER(me == 2, put(&links[1 + me], RIGHT), take()))
BODY(run_deque, FORMER(me, deque_take(RIGHT), deque_steal()))
BODY(run_deque_blind, FORMER(me, deque_take(BLIND), deque_steal()))
BODY(run_deque_top, FORMER(me, deque_take(TOP), deque_steal()))
BODY(run_once, once(RIGHT))
BODY(run_once_early, once(EARLY))
BODY(run_once_again, once(AGAIN))
BODY(run_wide, wide_exchange((struct counted){ NULL, 0 }, (struct counted){ (void *)(1 - me), 1 - me }))
BODY(run_wide_moved, FORMER(me, wide_write(RIGHT), wide_read()))
BODY(run_wide_halves, FORMER(me, wide_write(HALVES), wide_read()))

static int worked(void) { return work == 2; }
static int worked_three(void) { return work == 3; }
static int pushed(void) { return how_many() == 2; }
static int pushed_three(void) { return how_many() == 3; }
static int queued(void) { return all_queued() == 2 && last_link->next == NULL; }
static int got_once(void) { return got == 1; }
static int made_once(void) { return times == 1; }
static int any(void) { return 1; }

static const struct { const char *name; void *(*run)(void *); int threads, (*holds)(void); } ALL[] = {
    { "ticket", run_ticket, 2, worked },             { "ticket-three", run_ticket, 3, worked_three },
    { "ticket-plain", run_ticket_plain, 2, worked }, { "ticket-early", run_ticket_early, 2, worked },
    { "seqlock", run_seqlock, 2, any },              { "seqlock-once", run_seqlock_once, 2, any },
    { "seqlock-early", run_seqlock_early, 2, any },  { "seqlock-even", run_seqlock_even, 2, any },
    { "push", run_push, 2, pushed },                 { "push-three", run_push, 3, pushed_three },
    { "push-blind", run_push_blind, 2, pushed },     { "stack", run_stack, 2, all_taken },
    { "stack-three", run_stack, 3, all_taken },      { "stack-reuse", run_reuse, 2, all_taken },
    { "stack-counted", run_counted, 2, all_taken },  { "queue", run_queue, 2, queued },
    { "queue-blind", run_queue_blind, 2, queued },   { "queue-early", run_queue_early, 2, queued },
    { "queue-take", run_queue_take, 2, any },        { "queue-three", run_queue_three, 3, any },
    { "deque", run_deque, 2, got_once },             { "deque-blind", run_deque_blind, 2, got_once },
    { "deque-top", run_deque_top, 2, got_once },     { "once", run_once, 2, made_once },
    { "once-three", run_once, 3, made_once },        { "once-early", run_once_early, 2, any },
    { "once-again", run_once_again, 2, made_once },  { "wide", run_wide, 2, any },
    { "wide-moved", run_wide_moved, 2, any },
    { "wide-halves", run_wide_halves, 2, any },
};

int main(int argc, char **argv)
{
    pthread_t threads[3];
    int at = 0;
    MUST(argc != 2);
    while (strcmp(ALL[at].name, argv[1]))
        at++;
    for (int n = 0; n < 4; n++)
        links[n].value = n;
    if (!strncmp(argv[1], "stack", 5)) {
        /* The third node lies below the second one. */
        nodes[3].next = &nodes[2];
        atomic_init(&head, ALL[at].run == run_reuse ? &nodes[3] : NULL);
        counted = (struct counted){ ALL[at].run == run_counted ? &nodes[3] : NULL, 0 };
    }
    for (long n = 0; n < ALL[at].threads; n++)
        threads[n] = go(ALL[at].run, (void *)n);
    for (int n = 0; n < ALL[at].threads; n++)
        join(threads[n]);
    assert(ALL[at].holds());
    return 0;
}
