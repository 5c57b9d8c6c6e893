/* Loops on memory that nobody was seen to use otherwise before (--race explore): the thread in the loop makes no operation, and what it reads has to be found
 * out (src/runtime/polled.rs). "before": a child waits for a word in a shared mapping that another child writes afterwards. In the others nobody can write
 * any more when the loop begins, and what had been there for a moment is not there any more: so it waits for ever, but in another order it would have found it. "mapped":
 * the writer is another process. "copied": a thread that sleeps now wrote to what a fork has copied. "detached": a thread, of which nothing is left. */
#include "t.h"
#include <sched.h>

static volatile int x;

static void *for_a_moment(void *never)
{
    x = 1;
    x = 0;
    if (never)
        sem_wait(never);
    return NULL;
}

static void awaits(volatile int *word)
{
    while (!*word) {}
}

static void before(volatile int *word)
{
    for (int n = 0; n < 2; n++)
        if (fork() == 0) {
            if (n == 0)
                awaits(word);
            else
                *word = 1;
            _exit(0);
        }
    for (int n = 0; n < 2; n++)
        MUST(wait(NULL) < 0);
}

static void mapped(volatile int *word)
{
    int status;
    if (fork() == 0) {
        sched_yield();
        awaits(word);
        _exit(7);
    }
    *word = 1;
    *word = 0;
    MUST(wait(&status) < 0);
    assert(!WIFEXITED(status));
}

static void copied(void)
{
    static sem_t never;
    pthread_t thread;
    int status;
    MUST(pthread_create(&thread, NULL, for_a_moment, &never));
    if (fork() == 0) {
        sched_yield();
        awaits(&x);
        _exit(7);
    }
    MUST(wait(&status) < 0);
    assert(!WIFEXITED(status));
}

static void detached(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, for_a_moment, NULL));
    MUST(pthread_detach(thread));
    awaits(&x);
    assert(0);
}

int main(int argc, char **argv)
{
    volatile int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(argc != 2 || shared == MAP_FAILED);
    switch (argv[1][0]) {
    case 'b': before(shared); break;
    case 'm': mapped(shared); break;
    case 'c': copied(); break;
    default: detached();
    }
    return 0;
}
