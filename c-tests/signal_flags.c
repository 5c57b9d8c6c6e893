/* What does not depend on a schedule: order of delivery, masks, SA_NODEFER, SA_RESETHAND, the alternate stack, a jump out
 * of a handler. */
#include <setjmp.h>
#include <signal.h>

#include "t.h"

static char order[16];
static volatile int depth, most, on_stack;
static char stack[65536];
static sigjmp_buf back;

static void note(int signal)
{
    order[strlen(order)] = signal == SIGUSR1 ? '1' : signal == SIGUSR2 ? '2' : 'i';
}

static void deeper(int signal)
{
    if (++depth > most)
        most = depth;
    if (depth < 3)
        raise(signal);
    depth--;
}

static void where(int signal)
{
    char here;
    (void)signal;
    on_stack = &here >= stack && &here < stack + sizeof stack;
}

static void jump(int signal)
{
    siglongjmp(back, signal);
}

static void set(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    MUST(sigaction(signal, &action, NULL));
}

static void *idle(void *arg)
{
    return arg;
}

int main(void)
{
    sigset_t all, none, old;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, was;
    struct sigaction now;

    pthread_t t = go(idle, NULL);
    join(t);
    sigfillset(&all);
    sigemptyset(&none);
    set(SIGUSR1, note, 0);
    set(SIGUSR2, note, 0);
    set(SIGINT, note, 0);
    sigprocmask(SIG_BLOCK, &all, &old);
    raise(SIGUSR1);
    raise(SIGUSR2);
    kill(getpid(), SIGINT);
    if (sigsuspend(&none) != -1 || errno != EINTR || strcmp(order, "i21") != 0)
        abort();
    sigprocmask(SIG_SETMASK, &old, NULL);
    set(SIGUSR1, deeper, SA_NODEFER);
    raise(SIGUSR1);
    if (most != 3)
        abort();
    set(SIGUSR1, deeper, 0);
    most = 0;
    depth = 2;
    raise(SIGUSR1);
    if (most != 3)
        abort();
    set(SIGUSR1, note, SA_RESETHAND);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &now);
    if (now.sa_handler != SIG_DFL)
        abort();
    if (sigaltstack(NULL, &was) != 0 || was.ss_flags != SS_DISABLE)
        abort();
    MUST(sigaltstack(&alternate, NULL));
    set(SIGUSR1, where, SA_ONSTACK);
    raise(SIGUSR1);
    if (!on_stack)
        abort();
    set(SIGALRM, jump, 0);
    if (sigsetjmp(back, 1) == 0) {
        alarm(1);
        pause();
        abort();
    }
    sigprocmask(SIG_BLOCK, NULL, &old);
    if (sigismember(&old, SIGALRM))
        abort();
    return 0;
}
