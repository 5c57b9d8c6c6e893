/*
 * Two processes that send each other requests over POSIX message queues before they read what the other has sent.
 * buggy: the requests fill the queues, so that each waits for the other to read.
 * fixed: the second one reads first.
 */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>

enum { ROOM = 2, REQUESTS = 3, SIZE = 300 };

static const char *const names[2] = { "/vs-cycle-a", "/vs-cycle-b" };
static int polite;

static void put(mqd_t queue, int n)
{
    char text[SIZE];
    memset(text, 'a' + n, sizeof text);
    MUST(mq_send(queue, text, SIZE - n, 0));
}

static void get(mqd_t queue, int n)
{
    char text[SIZE];
    assert(mq_receive(queue, text, SIZE, NULL) == SIZE - n);
    assert(text[0] == 'a' + n && text[SIZE - n - 1] == 'a' + n);
}

static void talk(int me)
{
    mqd_t mine = mq_open(names[me], O_RDONLY), other = mq_open(names[1 - me], O_WRONLY);
    assert(mine >= 0 && other >= 0);
    if (polite && me == 1)
        for (int i = 1; i <= REQUESTS; i++)
            get(mine, i);
    for (int i = 1; i <= REQUESTS; i++)
        put(other, i);
    if (!(polite && me == 1))
        for (int i = 1; i <= REQUESTS; i++)
            get(mine, i);
    MUST(mq_close(mine));
    MUST(mq_close(other));
}

static void child(void)
{
    talk(1);
}

int main(int argc, char **argv)
{
    polite = arg_is(argc, argv, "fixed");
    for (int i = 0; i < 2; i++) {
        struct mq_attr attr = { .mq_maxmsg = ROOM, .mq_msgsize = SIZE };
        mq_unlink(names[i]);
        mqd_t queue = mq_open(names[i], O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
        assert(queue >= 0);
        MUST(mq_close(queue));
    }
    pid_t pid = fork_run(child);
    talk(0);
    assert(reap(pid) == 0);
    for (int i = 0; i < 2; i++)
        MUST(mq_unlink(names[i]));
    return 0;
}
