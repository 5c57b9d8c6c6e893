/*
 * A thread is asked to end while it waits in a call of the kernel, and what it waits for comes after that.  cancel_taken VARIANT KIND
 *   kept   what comes is thought to be there still when the thread has been cancelled
 *   ends   the call does not return
 * KIND: pipe, event, accept, messages, queue (POSIX), datagram; semaphore may return.
 */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *kind;
static int ends[2], pair[2], event, listener, client, messages;
static mqd_t queue;
static sem_t sem;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static void *takes(void *arg)
{
    char all[64];
    if (is("pipe")) read(ends[0], all, 1);
    if (is("event")) read(event, all, 8);
    if (is("accept")) accept(listener, NULL, NULL);
    if (is("messages")) msgrcv(messages, all, 8, 0, 0);
    if (is("queue")) mq_receive(queue, all, 64, NULL);
    if (is("datagram")) recv(pair[0], all, 1, 0);
    if (is("semaphore")) sem_wait(&sem);
    return arg;
}

static void gives(void)
{
    struct sockaddr_un name;
    socklen_t len = sizeof name;
    struct { long type; char text[8]; } message = { 1, "x" };
    uint64_t one = 1;
    if (is("pipe")) assert(write(ends[1], "x", 1) == 1);
    if (is("event")) assert(write(event, &one, 8) == 8);
    if (is("messages")) MUST(msgsnd(messages, &message, 8, 0));
    if (is("queue")) MUST(mq_send(queue, "x", 1, 0));
    if (is("datagram")) assert(send(pair[1], "x", 1, 0) == 1);
    if (is("semaphore")) MUST(sem_post(&sem));
    if (is("accept")) {
        MUST(getsockname(listener, (void *)&name, &len));
        MUST(connect(client, (void *)&name, len));
    }
}

/* It is there still. */
static int left(void)
{
    struct mq_attr now;
    char all[64];
    if (is("pipe")) return read(ends[0], all, 1) == 1;
    if (is("event")) return read(event, all, 8) == 8;
    if (is("accept")) return accept(listener, NULL, NULL) >= 0;
    if (is("messages")) return msgrcv(messages, all, 8, 0, IPC_NOWAIT) >= 0;
    if (is("queue")) return mq_getattr(queue, &now) == 0 && now.mq_curmsgs == 1;
    if (is("datagram")) return recv(pair[0], all, 1, MSG_DONTWAIT) == 1;
    return sem_trywait(&sem) == 0;
}

int main(int argc, char **argv)
{
    struct mq_attr room = { .mq_maxmsg = 1, .mq_msgsize = 64 };
    struct sockaddr_un any = { .sun_family = AF_UNIX };
    void *result;
    pthread_t t;
    kind = argv[2];
    MUST(pipe2(ends, O_NONBLOCK));
    fcntl(ends[0], F_SETFL, 0);
    event = eventfd(0, 0);
    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    MUST(sem_init(&sem, 0, 0));
    if (is("accept")) {
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        client = socket(AF_UNIX, SOCK_STREAM, 0);
        MUST(bind(listener, (void *)&any, sizeof any.sun_family));
        MUST(listen(listener, 1));
    }
    if (is("messages")) messages = msgget(IPC_PRIVATE, 0600);
    if (is("queue")) {
        queue = mq_open("/vsrun-cancel-taken", O_RDWR | O_CREAT, 0600, &room);
        MUST(mq_unlink("/vsrun-cancel-taken"));
    }
    t = go(takes, NULL);
    MUST(pthread_cancel(t));
    gives();
    MUST(pthread_join(t, &result));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(event, F_SETFL, O_NONBLOCK);
    if (is("accept")) fcntl(listener, F_SETFL, O_NONBLOCK);
    if (is("messages") && arg_is(argc, argv, "ends")) MUST(msgctl(messages, IPC_RMID, NULL));
    if (arg_is(argc, argv, "ends"))
        assert(result == PTHREAD_CANCELED);
    else {
        int there = left();
        if (is("messages")) MUST(msgctl(messages, IPC_RMID, NULL));
        assert(result != PTHREAD_CANCELED || there);
    }
    return 0;
}
