/*
 * A process that is told of messages by a new thread (mq_notify with SIGEV_THREAD): the thread asks to be told again and then reads what
 * is there.
 * buggy: it reads first, and may miss the last message.
 * once:  of two messages in a queue that nobody reads only the first is told.
 * taken: the request is taken back; whoever is told is told before that.
 */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static const char name[] = "/vs-notify-thread";
static mqd_t queue;
static int hasty, again, messages = 2;
static sem_t seen;

static void told(union sigval value);

static int ask(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 7 };
    event.sigev_notify_function = told;
    return mq_notify(queue, &event);
}

static void told(union sigval value)
{
    char text[8];
    assert(value.sival_int == 7);
    if (!again) {
        MUST(sem_post(&seen));
        return;
    }
    if (!hasty) MUST(ask());
    while (mq_receive(queue, text, sizeof text, NULL) >= 0) MUST(sem_post(&seen));
    assert(errno == EAGAIN);
    if (hasty) MUST(ask());
}

static void *sends(void *unused)
{
    mqd_t to = mq_open(name, O_WRONLY);
    assert(to >= 0);
    for (int i = 0; i < messages; i++) MUST(mq_send(to, "m", 1, 0));
    return unused;
}

static void raw_calls(void)
{
    char cookie[32] = "0123456789";
    struct { void *value; int number, how; char rest[48]; } event = { cookie, -1, SIGEV_THREAD, "" };
    int s[2];
    assert(syscall(SYS_mq_notify, queue, &event) == -1 && errno == EBADF);
    event.number = queue;
    assert(syscall(SYS_mq_notify, queue, &event) == -1 && errno == ENOTSOCK);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    event.number = s[0];
    assert(syscall(SYS_mq_notify, queue, &event) == -1 && errno == EINVAL);
    int link = event.number = socket(AF_NETLINK, SOCK_RAW, 0);
    event.value = (void *)8;
    assert(syscall(SYS_mq_notify, queue, &event) == -1 && errno == EFAULT);
    event.value = cookie;
    assert(syscall(SYS_mq_notify, -1, &event) == -1 && errno == EBADF);
    MUST(syscall(SYS_mq_notify, queue, &event));
    assert(syscall(SYS_mq_notify, queue, &event) == -1 && errno == EBUSY);
    char got[64];
    assert(recv(link, got, sizeof got, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    MUST(syscall(SYS_mq_notify, queue, NULL));
    MUST(syscall(SYS_mq_notify, queue, NULL));
    assert(recv(link, got, sizeof got, MSG_DONTWAIT) == 32 && memcmp(got, cookie, 31) == 0 && got[31] == 2);
    MUST(syscall(SYS_mq_notify, queue, &event));
    mqd_t to = mq_open(name, O_WRONLY), more = mq_open(name, O_RDONLY);
    MUST(mq_send(to, "m", 1, 0));
    MUST(mq_send(to, "m", 1, 0));
    assert(recv(link, got, sizeof got, MSG_DONTWAIT) == 32 && memcmp(got, cookie, 31) == 0 && got[31] == 1);
    MUST(syscall(SYS_mq_notify, queue, &event));
    MUST(mq_close(more));
    assert(recv(link, got, 5, MSG_DONTWAIT | MSG_TRUNC) == 32 && memcmp(got, cookie, 5) == 0);
    assert(recv(link, got, sizeof got, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

int main(int argc, char **argv)
{
    struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 8 };
    mq_unlink(name);
    queue = mq_open(name, O_CREAT | O_EXCL | O_RDONLY | O_NONBLOCK, 0600, &attr);
    assert(queue >= 0);
    MUST(sem_init(&seen, 0, 0));
    if (arg_is(argc, argv, "raw")) {
        raw_calls();
    } else if (arg_is(argc, argv, "taken")) {
        int n;
        MUST(ask());
        pthread_t t = go(sends, NULL);
        MUST(mq_notify(queue, NULL));
        join(t);
        MUST(sem_getvalue(&seen, &n));
        assert(n == 0 || n == 1);
        if (argc > 2) assert(n == 0);
    } else if (arg_is(argc, argv, "once")) {
        MUST(ask());
        assert(ask() == -1 && errno == EBUSY);
        sends(NULL);
        MUST(sem_wait(&seen));
        assert(sem_trywait(&seen) == -1 && errno == EAGAIN);
        MUST(ask());
    } else {
        hasty = arg_is(argc, argv, "buggy");
        again = 1;
        messages = argc > 2 ? 1 : 2;
        MUST(ask());
        pthread_t t = go(sends, NULL);
        for (int i = 0; i < messages; i++) MUST(sem_wait(&seen));
        join(t);
    }
    MUST(mq_unlink(name));
    return 0;
}
