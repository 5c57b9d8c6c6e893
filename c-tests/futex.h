/* The futex system call, which libc does not wrap. */
#ifndef FUTEX_H
#define FUTEX_H
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

static inline long futex(volatile int *word, int op, int value, const struct timespec *limit,
                         volatile int *word2, int value3)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, word2, value3);
}

/* Waits until *word is no longer value. */
static inline void futex_wait_while(volatile int *word, int value)
{
    while (*word == value)
        if (futex(word, FUTEX_WAIT, value, NULL, NULL, 0) != 0 && errno != EAGAIN && errno != EINTR)
            abort();
}
#endif
