/*
 * vs.h: annotations for programs that are checked by vsrun.
 *
 *   VS_toss(n)    a nondeterministic int in 0..n (both included).  Under vsrun a visible
 *                 operation, and every value is explored.
 *   VS_assert(e)  e must hold.  It is not switched off by NDEBUG.
 *
 *   VS_own(p, n)            from here on the calling thread alone uses the n bytes at p.
 *   VS_disown(p, n)         from here on nobody does, until some thread owns them.
 *   VS_hand_over(p, n, t)   from here on thread t (a pthread_t of this process) alone uses them;
 *                           t may be VS_ANYBODY: whoever uses or owns them next.
 *                 These are the exclusive access predicates of Stoller and Cohen.  They hold until
 *                 the memory is allocated anew, are checked and never trusted, and are nothing
 *                 without vsrun.  See docs/PREDICATES.md.
 *
 * Header only.  A program that uses it builds without vsrun and runs without it: then VS_toss
 * gives a pseudo-random value (repeatable when the environment variable VS_SEED holds a number)
 * and VS_assert prints a message and aborts.
 *
 * Under vsrun the preloaded library defines
 *     int  vsrun_toss(int n);
 *     void vsrun_assert_fail(const char *expr, const char *file, int line, const char *func);
 * Both are weak references here.  A plain weak reference would not do: in code that is not
 * position independent the linker resolves it to 0 for good, and what is preloaded at run time is
 * never looked at.  Hence on x86-64 the address is read from the global offset table, whose slot
 * the dynamic loader fills in with the preloaded definition, or with 0 if there is none.  That
 * holds with -pie, -no-pie and -static, with and without optimization.
 */
#ifndef VS_H
#define VS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*vs_toss_fn)(int);
typedef void (*vs_assert_fn)(const char *, const char *, int, const char *);
typedef void (*vs_claim_fn)(volatile void *, size_t);
typedef void (*vs_hand_over_fn)(volatile void *, size_t, unsigned long);

#if defined(__x86_64__) && defined(__ELF__)
/* Not volatile, no clobbers: the value never changes, so it may be moved or shared. */
#define VS_WEAK_ADDRESS(type, name)                                                             \
    __extension__({                                                                             \
        void *vs_address_;                                                                      \
        __asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0" : "=r"(vs_address_));   \
        (type)vs_address_;                                                                      \
    })
#else
int vsrun_toss(int n) __attribute__((weak));
void vsrun_assert_fail(const char *expr, const char *file, int line, const char *func)
    __attribute__((weak));
void vsrun_own(volatile void *at, size_t size) __attribute__((weak));
void vsrun_disown(volatile void *at, size_t size) __attribute__((weak));
void vsrun_hand_over(volatile void *at, size_t size, unsigned long to) __attribute__((weak));
#define VS_WEAK_ADDRESS(type, name) ((type)name)
#endif

/* Without vsrun: splitmix64 over a counter.  No state but the counter, so it is thread safe. */
static inline int vs_native_toss(int n)
{
    static uint64_t drawn;
    const char *text = getenv("VS_SEED");
    uint64_t z;
    if (n <= 0)
        return 0;
    z = text ? strtoull(text, (char **)0, 0)
             : ((uint64_t)time((time_t *)0) << 20) ^ (uint64_t)getpid();
    z += (__atomic_fetch_add(&drawn, 1, __ATOMIC_RELAXED) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (int)(z % ((uint64_t)n + 1));
}

static inline int vs_toss(int n)
{
    vs_toss_fn toss = VS_WEAK_ADDRESS(vs_toss_fn, vsrun_toss);
    return toss ? toss(n) : vs_native_toss(n);
}

__attribute__((noreturn)) static inline void vs_assert_failed(const char *expr, const char *file,
                                                              int line, const char *func)
{
    vs_assert_fn fail = VS_WEAK_ADDRESS(vs_assert_fn, vsrun_assert_fail);
    if (fail)
        fail(expr, file, line, func);
    fprintf(stderr, "%s:%d: %s: VS_assert(%s) failed\n", file, line, func, expr);
    abort();
}

/* pthread_t is an unsigned long, and 0 is none. */
#define VS_ANYBODY 0ul

static inline void vs_own(volatile void *at, size_t size)
{
    vs_claim_fn own = VS_WEAK_ADDRESS(vs_claim_fn, vsrun_own);
    if (own)
        own(at, size);
}

static inline void vs_disown(volatile void *at, size_t size)
{
    vs_claim_fn disown = VS_WEAK_ADDRESS(vs_claim_fn, vsrun_disown);
    if (disown)
        disown(at, size);
}

static inline void vs_hand_over(volatile void *at, size_t size, unsigned long to)
{
    vs_hand_over_fn hand_over = VS_WEAK_ADDRESS(vs_hand_over_fn, vsrun_hand_over);
    if (hand_over)
        hand_over(at, size, to);
}

#define VS_own(p, n) vs_own((volatile void *)(p), n)
#define VS_disown(p, n) vs_disown((volatile void *)(p), n)
#define VS_hand_over(p, n, to) vs_hand_over((volatile void *)(p), n, (unsigned long)(to))
#define VS_toss(n) vs_toss(n)
#define VS_assert(e) ((e) ? (void)0 : vs_assert_failed(#e, __FILE__, __LINE__, __func__))

#ifdef __cplusplus
}
#endif

#endif
