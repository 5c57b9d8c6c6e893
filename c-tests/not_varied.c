/* What natively comes in more orders than are explored, which is said. "cancel": a request to end a thread strikes in a read that has taken its
   byte. "robust": a thread leaves two robust mutexes, one after the other. "futex": a wait with a deadline gives up, though the word was
   written before. "signal": the child of a fork uses a condition variable for which a thread of its parent waits. "vfork": that its child changes nothing is assumed. And what can be
   said: "destroy": the child waits for ever for that thread, which is not there. "stopped": a stop that is taken back. */
#define _GNU_SOURCE
#include "t.h"
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>

static const char *what;
static int ends[2], word;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, robust[2];
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int waits, goes_on;

static int is(const char *name)
{
    return strcmp(what, name) == 0;
}

static void *thread(void *unused)
{
    struct timespec milli = { 0, 1000000 };
    char byte;

    if (is("cancel"))
        assert(read(ends[0], &byte, 1) == 1);
    else if (is("robust"))
        for (int i = 0; i < 2; i++)
            pthread_mutex_lock(&robust[i]);
    else if (is("futex")) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &milli, NULL, 0);
    } else {
        pthread_mutex_lock(&m);
        waits = 1;
        while (!goes_on)
            pthread_cond_wait(&c, &m);
        pthread_mutex_unlock(&m);
    }
    return unused;
}

static void waiting(void)
{
    int there = 0;
    while (!there) {
        pthread_mutex_lock(&m);
        there = waits;
        pthread_mutex_unlock(&m);
        sched_yield();
    }
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pid_t child;

    if (argc < 2)
        return 2;
    what = argv[1];
    if (is("vfork")) {
        child = vfork();
        if (child == 0)
            _exit(0);
        assert(waitpid(child, NULL, 0) == child);
        return 0;
    }
    if (is("stopped")) {
        child = fork();
        if (child == 0)
            for (;;)
                pause();
        MUST(kill(child, SIGSTOP));
        MUST(kill(child, SIGCONT));
        MUST(kill(child, SIGKILL));
        assert(waitpid(child, NULL, 0) == child);
        return 0;
    }
    MUST(pipe(ends));
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < 2; i++)
        pthread_mutex_init(&robust[i], &attr);
    pthread_t t = go(thread, NULL);
    if (is("cancel")) {
        assert(write(ends[1], "x", 1) == 1);
        pthread_cancel(t);
    } else if (is("futex")) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        word = 1;
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    } else if (is("signal") || is("destroy")) {
        waiting();
        child = fork();
        if (child == 0) {
            if (is("signal"))
                pthread_cond_signal(&c);
            else
                pthread_cond_destroy(&c);
            _exit(0);
        }
        assert(waitpid(child, NULL, 0) == child);
        pthread_mutex_lock(&m);
        goes_on = 1;
        pthread_cond_signal(&c);
        pthread_mutex_unlock(&m);
    }
    join(t);
    return 0;
}
