/*
 * Functions that --toss makes return a choice: called directly, by pointer, in threads, in a child of a fork, in a program that is executed
 * (not there); one that is too short for a jump; and that all registers but that of the result are kept.
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

static OUT_OF_LINE int sensor(void)
{
    __asm__ volatile("");
    return 7;
}

OUT_OF_LINE unsigned char belt(int speed)
{
    __asm__ volatile("");
    return (unsigned char)speed;
}

static int (*volatile by_pointer)(void) = sensor;

/* Three bytes, and nothing between it and the next function; behind that one there is room. */
int tiny(void);
int after_tiny(int *);
__asm__(".text\n.balign 64\n"
        ".globl tiny\n.type tiny, @function\ntiny: xorl %eax, %eax\nret\n.size tiny, .-tiny\n"
        ".globl after_tiny\n.type after_tiny, @function\nafter_tiny: movl (%rdi), %eax\nret\n.size after_tiny, .-after_tiny\n"
        ".balign 64\n");

/* True if a call of sensor has kept all that is kept here: a caller that sees it may rely on that. */
static int keeps_registers(void)
{
    uint64_t general[8], vector[2];
    int64_t result;
    __asm__ volatile("movq $1, %%rcx\nmovq $2, %%rdx\nmovq $3, %%rsi\nmovq $4, %%rdi\n"
                     "movq $5, %%r8\nmovq $6, %%r9\nmovq $7, %%r10\nmovq $8, %%r11\n"
                     "movq %%rcx, %%xmm0\nmovq %%r11, %%xmm15\n"
                     "subq $128, %%rsp\ncall *%3\naddq $128, %%rsp\n"
                     "movq %%rcx, 0(%1)\nmovq %%rdx, 8(%1)\nmovq %%rsi, 16(%1)\nmovq %%rdi, 24(%1)\n"
                     "movq %%r8, 32(%1)\nmovq %%r9, 40(%1)\nmovq %%r10, 48(%1)\nmovq %%r11, 56(%1)\n"
                     "movq %%xmm0, 0(%2)\nmovq %%xmm15, 8(%2)\n"
                     : "=&a"(result)
                     : "r"(general), "r"(vector), "r"(sensor)
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm15", "memory", "cc");
    for (uint64_t i = 0; i < 8; i++)
        if (general[i] != i + 1)
            return 0;
    return vector[0] == 1 && vector[1] == 8 && result >= 0 && result <= 7;
}

static int total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *counts(void *arg)
{
    int more = sensor();
    pthread_mutex_lock(&lock);
    total += more;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "direct"))
        assert(!(sensor() == 1 && belt(200) == 2));
    if (!strcmp(what, "pointer"))
        assert(by_pointer() != 1);
    if (!strcmp(what, "tiny")) {
        int seven = 7;
        assert(after_tiny(&seven) == 7);
        assert(tiny() != 1);
    }
    if (!strcmp(what, "registers"))
        assert(keeps_registers());
    if (!strcmp(what, "threads")) {
        pthread_t a, b;
        pthread_create(&a, 0, counts, 0);
        pthread_create(&b, 0, counts, 0);
        pthread_join(a, 0);
        pthread_join(b, 0);
        assert(total != 4);
    }
    if (!strcmp(what, "fork")) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(sensor());
        waitpid(child, &status, 0);
        assert(WEXITSTATUS(status) != 1);
    }
    if (!strcmp(what, "exec"))
        execl("/proc/self/exe", argv[0], "pointer", (char *)0);
    return 0;
}
