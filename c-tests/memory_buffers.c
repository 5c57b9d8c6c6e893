/* Litmus tests of x86 (Sewell, Sarkar, Owens, Nardelli, Myreen: x86-TSO, CACM 2010; Intel SDM 3A, 9.2.3): each asserts that an outcome does not come
 * about. With --memory tso those that the processor allows are found, and those that it forbids are not.
 * Allowed: "sb" (a store is overtaken by a load), "n6" (a thread sees its own store before others do), "n5s" (the same of two), "rwc" (one of the loads of a
 * third thread), "rmw" (a plain update).
 * Forbidden: "mp" (a message), "lb" (a load is not overtaken by a store), "iriw" (all see stores of others in one order), "wrc" (what was seen has been
 * stored), "fence", "xchg" (of "sb"), "half" (a byte of what was stored, and the rest), "2+2w" (stores stay in order), "count" (locked updates). */
#include "t.h"

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define STORE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define XCHG(x, v) __atomic_exchange_n(&(x), v, __ATOMIC_SEQ_CST)

static int x, y, r[8];
static union { unsigned long all; unsigned char bytes[8]; } word;

static void *sb1(void *u) { STORE(x, 1); r[0] = LOAD(y); return u; }
static void *sb2(void *u) { STORE(y, 1); r[1] = LOAD(x); return u; }
static int sb(void) { return r[0] || r[1]; }

static void *fence1(void *u) { STORE(x, 1); FENCE(); r[0] = LOAD(y); return u; }
static void *fence2(void *u) { STORE(y, 1); FENCE(); r[1] = LOAD(x); return u; }
static void *xchg1(void *u) { XCHG(x, 1); r[0] = LOAD(y); return u; }
static void *xchg2(void *u) { XCHG(y, 1); r[1] = LOAD(x); return u; }

static void *n61(void *u) { STORE(x, 1); r[0] = LOAD(x); r[1] = LOAD(y); return u; }
static void *n62(void *u) { STORE(y, 2); STORE(x, 2); return u; }
static int n6(void) { return !(r[0] == 1 && r[1] == 0 && x == 1); }

static void *n51(void *u) { STORE(x, 1); r[0] = LOAD(x); r[1] = LOAD(y); return u; }
static void *n52(void *u) { STORE(y, 1); r[2] = LOAD(y); r[3] = LOAD(x); return u; }
static int n5(void) { return !(r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0); }

static void *mp1(void *u) { STORE(x, 1); STORE(y, 1); return u; }
static void *mp2(void *u) { r[0] = LOAD(y); r[1] = LOAD(x); return u; }
static int mp(void) { return !(r[0] == 1 && r[1] == 0); }

static void *lb1(void *u) { r[0] = LOAD(x); STORE(y, 1); return u; }
static void *lb2(void *u) { r[1] = LOAD(y); STORE(x, 1); return u; }
static int lb(void) { return !(r[0] == 1 && r[1] == 1); }

static void *store_x(void *u) { STORE(x, 1); return u; }
static void *store_y(void *u) { STORE(y, 1); return u; }
static void *xy(void *u) { r[0] = LOAD(x); r[1] = LOAD(y); return u; }
static void *yx(void *u) { r[2] = LOAD(y); r[3] = LOAD(x); return u; }
static int iriw(void) { return !(r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0); }

static void *wrc2(void *u) { r[0] = LOAD(x); STORE(y, 1); return u; }
static void *wrc3(void *u) { r[1] = LOAD(y); r[2] = LOAD(x); return u; }
static int wrc(void) { return !(r[0] == 1 && r[1] == 1 && r[2] == 0); }

static void *rwc3(void *u) { STORE(y, 1); r[2] = LOAD(x); return u; }
static int rwc(void) { return !(r[0] == 1 && r[1] == 0 && r[2] == 0); }

static void *w1(void *u) { STORE(x, 1); STORE(y, 2); return u; }
static void *w2(void *u) { STORE(y, 1); STORE(x, 2); return u; }
static int w22(void) { return !(x == 1 && y == 1); }

/* The whole is loaded only once the byte is visible: so is what was stored before. */
static void *half1(void *u) { STORE(y, 1); STORE(word.bytes[0], 1); r[0] = LOAD(word.all) == 1; r[1] = LOAD(x); return u; }
static void *half2(void *u) { STORE(x, 1); FENCE(); r[2] = LOAD(y); r[3] = LOAD(word.all); return u; }
static int half(void) { return !(r[1] == 0 && r[2] == 0) && r[0]; }

static void *rmw1(void *u) { __asm__ volatile("addl $1, %0" : "+m"(x)); r[0] = LOAD(y); return u; }
static void *rmw2(void *u) { __asm__ volatile("addl $1, %0" : "+m"(y)); r[1] = LOAD(x); return u; }

static void *add(void *u) { __atomic_fetch_add(&x, 1, __ATOMIC_RELAXED); __atomic_fetch_add(&x, 1, __ATOMIC_RELAXED); return u; }
static int four(void) { return x == 4; }

static const struct { const char *name; void *(*run[4])(void *); int (*holds)(void); } ALL[] = {
    { "sb", { sb1, sb2 }, sb },       { "fence", { fence1, fence2 }, sb },  { "xchg", { xchg1, xchg2 }, sb },
    { "n6", { n61, n62 }, n6 },       { "n5s", { n51, n52 }, n5 },          { "mp", { mp1, mp2 }, mp },
    { "lb", { lb1, lb2 }, lb },       { "iriw", { store_x, store_y, xy, yx }, iriw },
    { "wrc", { store_x, wrc2, wrc3 }, wrc }, { "rwc", { store_x, xy, rwc3 }, rwc },
    { "2+2w", { w1, w2 }, w22 },      { "half", { half1, half2 }, half },   
    { "rmw", { rmw1, rmw2 }, sb },    { "count", { add, add }, four },
};

int main(int argc, char **argv)
{
    pthread_t threads[4];
    int at = 0, n = 0;
    MUST(argc != 2);
    while (strcmp(ALL[at].name, argv[1]))
        at++;
    for (; n < 4 && ALL[at].run[n]; n++)
        MUST(pthread_create(&threads[n], NULL, ALL[at].run[n], NULL));
    while (n > 0)
        MUST(pthread_join(threads[--n], NULL));
    assert(ALL[at].holds());
    return 0;
}
