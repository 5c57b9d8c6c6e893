/* A thread is detached by one and joined by another: it fails, or it is joined all the same where that had begun. And exit that main's end, or quick_exit,
   is, beside a thread that registers a handler or exits. */
#include "t.h"
#include <string.h>
#include <unistd.h>

static pthread_t worker;

static void fails(void) { _exit(7); }

static void *detaches_itself(void *arg)
{
    MUST(pthread_detach(pthread_self()));
    return arg;
}

static void *nothing(void *arg) { return arg; }

static void *detaches(void *arg)
{
    /* It may have been joined, and be gone. */
    int error = pthread_detach(worker);
    MUST(error != 0 && error != ESRCH);
    return arg;
}

static void *registers(void *arg)
{
    /* None is taken once they have all been run. */
    (void)atexit(fails);
    return arg;
}

static void *quits(void *arg)
{
    quick_exit(3);
    return arg;
}

int main(int argc, char **argv)
{
    MUST(argc != 2);
    if (!strcmp(argv[1], "itself")) {
        worker = go(detaches_itself, NULL);
        printf("%d\n", pthread_join(worker, NULL));
    } else if (!strcmp(argv[1], "other")) {
        worker = go(nothing, NULL);
        pthread_t t = go(detaches, NULL);
        int error = pthread_join(worker, NULL);
        join(t);
        printf("%d\n", error);
    } else if (!strcmp(argv[1], "creator")) {
        worker = go(nothing, NULL);
        MUST(pthread_detach(worker));
    } else if (!strcmp(argv[1], "handler")) {
        worker = go(registers, NULL);
    } else {
        worker = go(quits, NULL);
    }
    return 0;
}
