/*
 * System V calls that tell who waits.  who_waits VARIANT
 *   early     GETNCNT is taken to be 1 though the other one may not wait yet
 *   handed    as soon as GETNCNT is 1, what is added is the waiter's: nobody else gets it
 *   zero      the same with GETZCNT
 *   removed   the set is removed while somebody is known to wait: EIDRM, never EINVAL
 *   thread    msg_lrpid is the number of the thread that has waited, not of its process (ipc/msg.c, pipelined_send)
 *   process   msg_lrpid is that of the process where nobody has waited
 */
#include "t.h"
#include <errno.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

static int set, queue, result;

static int add(int amount, int flags)
{
    struct sembuf op = { 0, amount, flags };
    return semop(set, &op, 1);
}

static void *takes(void *amount)
{
    result = add((int)(long)amount, 0) == 0 ? 0 : errno;
    return NULL;
}

static void *receives(void *arg)
{
    struct { long type; char text[1]; } message;
    assert(msgrcv(queue, &message, 1, 0, 0) == 1);
    return arg;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct { long type; char text[1]; } message = { 1, "x" };
    if (strcmp(argv[1], "thread") == 0 || strcmp(argv[1], "process") == 0) {
        queue = msgget(IPC_PRIVATE, 0600);
        int first = strcmp(argv[1], "process") == 0;
        if (first) assert(msgsnd(queue, &message, 1, 0) == 0);
        pthread_t other = go(receives, NULL);
        if (!first) assert(msgsnd(queue, &message, 1, 0) == 0);
        pthread_join(other, NULL);
        struct msqid_ds told;
        assert(msgctl(queue, IPC_STAT, &told) == 0);
        msgctl(queue, IPC_RMID, NULL);
        assert(told.msg_lrpid == getpid());
        return 0;
    }
    int zero = strcmp(argv[1], "zero") == 0;
    set = semget(IPC_PRIVATE, 1, 0600);
    assert(set >= 0);
    if (zero) assert(add(1, 0) == 0);
    pthread_t other = go(takes, (void *)(long)(zero ? 0 : -1));
    int waiting = semctl(set, 0, zero ? GETZCNT : GETNCNT);
    if (strcmp(argv[1], "early") == 0) {
        int seen = waiting;
        add(1, 0);
        pthread_join(other, NULL);
        semctl(set, 0, IPC_RMID);
        assert(seen == 1);
    } else if (strcmp(argv[1], "removed") == 0) {
        semctl(set, 0, IPC_RMID);
        pthread_join(other, NULL);
        assert(result == EIDRM || !waiting);
    } else if (zero) {
        add(-1, 0), add(1, 0);
        if (!waiting) add(-1, IPC_NOWAIT);
        pthread_join(other, NULL);
        semctl(set, 0, IPC_RMID);
    } else {
        add(1, 0);
        int stolen = add(-1, IPC_NOWAIT) == 0;
        if (stolen) add(1, 0);
        pthread_join(other, NULL);
        semctl(set, 0, IPC_RMID);
        assert(!(waiting && stolen));
    }
    return 0;
}
