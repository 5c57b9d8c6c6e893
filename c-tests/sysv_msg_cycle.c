/*
 * Two processes that send each other requests over System V message queues before they read what the other has sent.
 * buggy: the requests fill the queues, so that each waits for the other to read.
 * fixed: the second one reads first.
 */
#include "t.h"
#include <sys/msg.h>

#define SIZE 8192

struct message {
    long type;
    char text[SIZE];
};

static int queues[2];
static int polite;

static void put(int queue, int n)
{
    struct message m = { .type = n };
    memset(m.text, 'a' + n, sizeof m.text);
    MUST(msgsnd(queue, &m, SIZE, 0));
}

static void get(int queue, int n)
{
    struct message m;
    assert(msgrcv(queue, &m, SIZE, 0, 0) == SIZE);
    assert(m.type == n && m.text[0] == 'a' + n && m.text[SIZE - 1] == 'a' + n);
}

static void talk(int me)
{
    int mine = queues[me], other = queues[1 - me];
    if (polite && me == 1)
        for (int i = 1; i <= 3; i++)
            get(mine, i);
    for (int i = 1; i <= 3; i++)
        put(other, i);
    if (!(polite && me == 1))
        for (int i = 1; i <= 3; i++)
            get(mine, i);
}

static void child(void)
{
    talk(1);
}

int main(int argc, char **argv)
{
    polite = arg_is(argc, argv, "fixed");
    for (int i = 0; i < 2; i++) {
        queues[i] = msgget(IPC_PRIVATE, 0600);
        assert(queues[i] >= 0);
    }
    pid_t pid = fork_run(child);
    talk(0);
    assert(reap(pid) == 0);
    struct msqid_ds status;
    for (int i = 0; i < 2; i++) {
        MUST(msgctl(queues[i], IPC_STAT, &status));
        assert(status.msg_qnum == 0 && status.msg_cbytes == 0 && status.msg_qbytes == 2 * SIZE);
        assert(status.msg_lspid == (i == 0 ? pid : getpid()));
        MUST(msgctl(queues[i], IPC_RMID, NULL));
        assert(msgctl(queues[i], IPC_STAT, &status) == -1 && errno == EINVAL);
    }
    return 0;
}
