/* An alternate stack that is given back and unmapped, as the start and end of Rust programs do, in the first thread and in another one. A handler
 * that asks for it runs on the usual stack from then on. */
#include "t.h"
#include <signal.h>

static int handled;

static void handler(int signal)
{
    (void)signal;
    __atomic_fetch_add(&handled, 1, __ATOMIC_SEQ_CST);
}

static void *takes_and_gives_back(void *unused)
{
    const size_t size = 65536;
    void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = { .ss_sp = place, .ss_size = size }, now;
    assert(place != MAP_FAILED);
    MUST(sigaltstack(&stack, NULL));
    MUST(raise(SIGUSR1));
    sched_yield();
    stack.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&stack, NULL));
    MUST(munmap(place, size));
    MUST(raise(SIGUSR1));
    MUST(sigaltstack(NULL, &now));
    assert(now.ss_flags == SS_DISABLE);
    return unused;
}

int main(void)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(sigaction(SIGSEGV, &action, NULL));
    pthread_t t = go(takes_and_gives_back, NULL);
    takes_and_gives_back(NULL);
    join(t);
    assert(handled == 4);
    puts("done");
    return 0;
}
