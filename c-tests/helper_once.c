/* Two threads ask at once for a call in a thread of libc's (SIGEV_THREAD), of which libc makes one at the first request: by a timer, or when a
   message comes. Either may be the first, and a child begins anew. */
#define _GNU_SOURCE
#include "t.h"
#include <mqueue.h>
#include <signal.h>
#include <time.h>

static mqd_t queue;
static int timers, child;

static void called(union sigval unused)
{
    (void)unused;
}

static void *asks(void *unused)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = called };

    if (timers) {
        timer_t timer;
        MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    } else {
        int result = mq_notify(queue, &event);
        assert(result == 0 || errno == EBUSY);
        if (result == 0 && !child)
            MUST(mq_notify(queue, NULL));
    }
    return unused;
}

static void both(void)
{
    pthread_t t = go(asks, NULL);
    asks(NULL);
    join(t);
}

int main(int argc, char **argv)
{
    struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 1 };

    timers = argc > 1 && strcmp(argv[1], "timers") == 0;
    queue = mq_open("/helper_once", O_RDWR | O_CREAT, 0600, &attr);
    assert(queue >= 0);
    mq_unlink("/helper_once");
    child = argc > 2;
    if (child) {
        asks(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            both();
            _exit(0);
        }
        int status;
        assert(waitpid(pid, &status, 0) == pid && status == 0);
    } else
        both();
    exit(0);
}
