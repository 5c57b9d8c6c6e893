/*
 * What msgget, msgsnd, msgrcv and msgctl answer, as Linux does; a queue that is removed under one who waits.
 */
#include "t.h"
#include <sys/msg.h>

static struct { long type; char text[9000]; } m, n;
static int q;

static void fails(long result, int error)
{
    assert(result == -1 && errno == error);
}

static int put(long type, size_t size)
{
    m.type = type;
    return msgsnd(q, &m, size, IPC_NOWAIT);
}

static long get(long type, int flags)
{
    return msgrcv(q, &n, 8192, type, flags | IPC_NOWAIT);
}

static void waits(void)
{
    errno = 0;
    long result = msgrcv(q, &n, sizeof n.text, 7, 0);
    assert(result == -1 && (errno == EIDRM || errno == EINVAL));
}

int main(void)
{
    fails(msgget(0x5151, 0600), ENOENT);
    int named = msgget(0x5151, IPC_CREAT | 0600);
    assert(named >= 0 && msgget(0x5151, 0) == named);
    fails(msgget(0x5151, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
    MUST(msgctl(named, IPC_RMID, NULL));
    fails(msgget(0x5151, 0), ENOENT);

    q = msgget(IPC_PRIVATE, 0600);
    assert(q >= 0);
    fails(put(1, 8193), EINVAL);
    fails(put(0, 1), EINVAL);
    fails(msgsnd(424242, &m, 1, 0), EINVAL);
    MUST(put(1, 8192));
    MUST(put(1, 8192));
    fails(put(1, 1), EAGAIN);
    MUST(put(1, 0));
    fails(msgrcv(q, &n, 10, 0, IPC_NOWAIT), E2BIG);
    assert(msgrcv(q, &n, 10, 0, IPC_NOWAIT | MSG_NOERROR) == 10);
    fails(get(5, 0), ENOMSG);
    fails(get(1, MSG_EXCEPT), ENOMSG);
    assert(get(0, 0) == 8192 && get(0, 0) == 0);
    fails(get(0, 0), ENOMSG);
    int empty = 0;
    while (put(1, 0) == 0)
        empty++;
    assert(empty == 16384 && errno == EAGAIN);
    while (get(0, 0) == 0)
        empty--;
    assert(empty == 0);
    for (int i = 0; i < 4; i++)
        MUST(put("\3\2\4\2"[i], (size_t)i + 1));
    assert(get(-3, 0) == 2 && n.type == 2 && get(-3, 0) == 4 && get(-3, 0) == 1 && n.type == 3);
    fails(get(-3, 0), ENOMSG);
    assert(get(3, MSG_EXCEPT) == 3 && n.type == 4);

    struct msqid_ds status;
    MUST(msgctl(q, IPC_STAT, &status));
    assert(status.msg_qbytes == 16384 && (status.msg_perm.mode & 0777) == 0600);
    status.msg_qbytes = 3;
    MUST(msgctl(q, IPC_SET, &status));
    MUST(put(1, 3));
    fails(put(1, 1), EAGAIN);
    assert(get(1, 0) == 3);

    pid_t pid = fork_run(waits);
    MUST(msgctl(q, IPC_RMID, NULL));
    assert(reap(pid) == 0);
    fails(put(1, 1), EINVAL);
    fails(msgctl(q, IPC_RMID, NULL), EINVAL);
    return 0;
}
