/*
 * The time-stamp counter (rdtsc, rdtscp) is virtual: the same in every execution, and never goes back.  rdtsc VARIANT
 *   values   readings by threads, children and an exec'd program, with and without prefixes: printed, so that
 *            executions that differ would be noted
 *   decide   what threads do depends on all bits of the counter, so that an execution that read other values would not
 *            follow its schedule
 *   order    every reading is later than all before it, in whichever thread or process, and in step with the clock
 *   spin     a wait that ends when the counter has moved far enough
 *   long     a wait of twenty seconds, in step with the clock (not natively: the counter's rate is another)
 *   handler  a SIGSEGV handler of the program's own sees faults, and readings do not disturb it
 *   control  prctl(PR_SET_TSC): a thread that asked for faults gets them
 *   ignored  SIGSEGV is ignored, which changes nothing
 *   fault    another instruction that faults the same way is a crash
 *   asked    so is a reading of a thread that asked for faults
 */

#include "t.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <x86intrin.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long before_main, *last;

__attribute__((constructor)) static void early(void)
{
    before_main = __rdtsc();
}

/* With a prefix that means nothing, and the last bytes of a page behind which there is nothing. */
static unsigned long long at_the_edge(void)
{
    static unsigned long long (*f)(void);

    if (!f) {
        static const unsigned char code[] = {0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3};
        unsigned char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert(pages != MAP_FAILED);
        /* start: jmp reading; back: shl, or, ret; reading (the last 7 bytes): jmp over it is not needed. */
        unsigned char *start = pages + 4096 - 32;
        memcpy(start, "\xeb\x0d", 2); /* jmp start + 15 */
        memcpy(start + 2, code, sizeof code);
        memset(start + 10, 0x90, 22);
        memcpy(start + 27, "\x66\x0f\x31\xeb\xe2", 5); /* rdtsc; jmp start + 2 */
        MUST(munmap(pages + 4096, 4096));
        f = (unsigned long long (*)(void))start;
    }
    return f();
}

static void see(unsigned long long now)
{
    assert(now > *last);
    *last = now;
}

static void *reader(void *arg)
{
    unsigned processor = 77;

    for (int i = 0; i < 2; i++) {
        MUST(pthread_mutex_lock(&m));
        see(__rdtsc());
        see(__rdtscp(&processor));
        assert(processor != 77);
        MUST(pthread_mutex_unlock(&m));
    }
    return arg;
}

static unsigned long long monotonic(void)
{
    struct timespec t;
    MUST(clock_gettime(CLOCK_MONOTONIC, &t));
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void order(void)
{
    pthread_t t[2];

    last = shared(sizeof *last);
    see(before_main);
    for (int i = 0; i < 2; i++)
        t[i] = go(reader, NULL);
    for (int i = 0; i < 2; i++)
        join(t[i]);
    see(at_the_edge());
    see(monotonic());
    pid_t pid = fork();
    if (pid == 0) {
        reader(NULL);
        _exit(0);
    }
    assert(reap(pid) == 0);
    see(monotonic());
    struct timespec long_time = {3600, 0};
    unsigned long long start = __rdtsc();
    MUST(nanosleep(&long_time, NULL));
    assert(__rdtsc() - start >= 3599ull * 1000000000);
}

static void *decider(void *arg)
{
    for (int i = 0; i < 2; i++) {
        unsigned long long now = __rdtsc() * 0x9e3779b97f4a7c15ull;
        for (unsigned long long n = (now >> 62) + 1; n > 0; n--) {
            MUST(pthread_mutex_lock(&m));
            MUST(pthread_mutex_unlock(&m));
        }
    }
    return arg;
}

static void decide(void)
{
    pthread_t t = go(decider, NULL);
    decider(NULL);
    join(t);
}

static void values(char **argv)
{
    unsigned processor;

    unsigned long long one = __rdtsc(), two = __rdtscp(&processor), three = at_the_edge();
    printf("%llu %llu %llu %llu %u\n", before_main, one, two, three, processor);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        printf("child %llu\n", (unsigned long long)__rdtsc());
        fflush(stdout);
        execl(argv[0], argv[0], "again", (char *)NULL);
        abort();
    }
    assert(reap(pid) == 0);
    printf("parent %llu\n", (unsigned long long)__rdtsc());
}

static void spin(void)
{
    unsigned long long start = __rdtsc();
    while (__rdtsc() - start < 100000)
        ;
}

static void long_spin(void)
{
    unsigned long long clock = monotonic(), start = __rdtsc();
    while (__rdtsc() - start < 20ull * 1000000000)
        _mm_pause();
    clock = monotonic() - clock;
    assert(clock >= 20ull * 1000000000 && clock < 21ull * 1000000000);
}

static sigjmp_buf back;
static volatile int faults, reading;
static volatile long code;

static void handler(int number, siginfo_t *info, void *context)
{
    assert(number == SIGSEGV);
    (void)context;
    if (reading)
        (void)__rdtsc();
    faults++;
    code = info->si_code;
    siglongjmp(back, 1);
}

static void install(int flags)
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags}, old;
    static char stack[1 << 16];
    stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};

    MUST(sigaltstack(&alt, NULL));
    MUST(sigaction(SIGSEGV, &a, NULL));
    MUST(sigaction(SIGSEGV, NULL, &old));
    assert(old.sa_sigaction == handler);
}

static void fault_and_return(void)
{
    unsigned long long one = __rdtsc();
    assert(one > before_main && !faults);
    if (!sigsetjmp(back, 1))
        *(volatile int *)8 = 1;
    assert(faults == 1 && code == SEGV_MAPERR);
    if (!sigsetjmp(back, 1))
        *(volatile int *)(1ull << 63) = 1;
    assert(faults == 2 && code == SI_KERNEL);
    if (!sigsetjmp(back, 1))
        raise(SIGSEGV);
    assert(faults == 3 && code == SI_TKILL);
    assert(__rdtsc() > one && faults == 3);
}

static void *unfaulting(void *arg)
{
    int mode = 0;
    MUST(prctl(PR_GET_TSC, &mode));
    assert(mode == PR_TSC_SIGSEGV);
    MUST(prctl(PR_SET_TSC, PR_TSC_ENABLE));
    (void)__rdtsc();
    return arg;
}

static void control(void)
{
    int mode = 0;
    unsigned long long one = __rdtsc();

    install(0);
    MUST(prctl(PR_GET_TSC, &mode));
    assert(mode == PR_TSC_ENABLE);
    assert(prctl(PR_SET_TSC, 3) == -1 && errno == EINVAL);
    MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    if (!sigsetjmp(back, 1)) {
        (void)__rdtsc();
        abort();
    }
    assert(faults == 1 && code == SI_KERNEL);
    join(go(unfaulting, NULL)); /* Of that thread only. */
    MUST(prctl(PR_GET_TSC, &mode));
    assert(mode == PR_TSC_SIGSEGV);
    MUST(prctl(PR_SET_TSC, PR_TSC_ENABLE));
    assert(__rdtsc() > one && faults == 1);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "values")) values(argv);
    else if (arg_is(argc, argv, "again"))
        printf("exec'd %llu %llu\n", before_main, (unsigned long long)__rdtsc());
    else if (arg_is(argc, argv, "decide")) decide();
    else if (arg_is(argc, argv, "order")) order();
    else if (arg_is(argc, argv, "spin")) spin();
    else if (arg_is(argc, argv, "long")) long_spin();
    else if (arg_is(argc, argv, "handler")) {
        install(SA_ONSTACK);
        reading = 1;
        fault_and_return();
    } else if (arg_is(argc, argv, "control")) control();
    else if (arg_is(argc, argv, "ignored")) {
        signal(SIGSEGV, SIG_IGN);
        (void)__rdtsc();
        raise(SIGSEGV);
    } else if (arg_is(argc, argv, "fault")) {
        (void)__rdtsc();
        __asm__ volatile("hlt");
    } else if (arg_is(argc, argv, "asked")) {
        MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
        (void)__rdtsc();
    } else return 2;
    return 0;
}
