/*
 * A process that is told of messages by a signal (mq_notify): its handler asks to be told again and then reads what is there.
 * buggy: it reads first. A message that comes between the last read and the request finds the queue empty with nobody to be
 *        told, and the one that waits for all of them waits for ever.
 */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>

enum { MESSAGES = 2 };

static const char name[] = "/vs-notify";
static mqd_t queue;
static int hasty;
static volatile sig_atomic_t seen;

static void ask(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    MUST(mq_notify(queue, &event));
}

static void drain(void)
{
    char text[8];
    while (mq_receive(queue, text, sizeof text, NULL) >= 0)
        seen++;
    assert(errno == EAGAIN);
}

static void on_message(int signal)
{
    (void)signal;
    if (!hasty)
        ask();
    drain();
    if (hasty)
        ask();
}

static void sender(void)
{
    mqd_t to = mq_open(name, O_WRONLY);
    assert(to >= 0);
    for (int i = 0; i < MESSAGES; i++)
        MUST(mq_send(to, "m", 1, 0));
}

int main(int argc, char **argv)
{
    struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 8 };
    struct sigaction action = { .sa_handler = on_message };
    sigset_t blocked, before;
    hasty = arg_is(argc, argv, "buggy");
    mq_unlink(name);
    queue = mq_open(name, O_CREAT | O_EXCL | O_RDONLY | O_NONBLOCK, 0600, &attr);
    assert(queue >= 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &blocked, &before));
    MUST(sigaction(SIGUSR1, &action, NULL));
    ask();
    pid_t pid = fork_run(sender);
    while (seen < MESSAGES)
        sigsuspend(&before);
    assert(reap(pid) == 0);
    MUST(mq_unlink(name));
    return 0;
}
