/*
 * Sets of signals: two that the program gives, in a call and in a context, and those that libc blocks and unblocks signals with while it makes a
 * thread, which are its own.  Prints where the program's are.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static sigset_t given;
static ucontext_t context;

static void *body(void *a)
{
    pthread_sigmask(SIG_BLOCK, &given, NULL);
    getcontext(&context);
    return a;
}

int main(void)
{
    pthread_t t;

    printf("%p %p\n", (void *)&given, (void *)&context.uc_sigmask);
    fflush(stdout);
    pthread_create(&t, NULL, body, NULL);
    pthread_join(t, NULL);
    return 0;
}
