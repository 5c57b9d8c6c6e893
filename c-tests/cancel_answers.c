/* A request to end a thread, which it heeds anywhere, answers what it has done: it strikes before the next instruction, or later. */
#include "t.h"

static sem_t ready;
static int done;

static void *works(void *unused)
{
    int old;
    (void)unused;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    sem_post(&ready);
    done = 1;
    pthread_testcancel();
    done = 2;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t;
    MUST(sem_init(&ready, 0, 0));
    t = go(works, NULL);
    MUST(sem_wait(&ready));
    MUST(pthread_cancel(t));
    join(t);
    if (arg_is(argc, argv, "at-once")) assert(done != 0);
    if (arg_is(argc, argv, "later")) assert(done != 1);
    if (arg_is(argc, argv, "late")) assert(done != 2);
    return 0;
}
