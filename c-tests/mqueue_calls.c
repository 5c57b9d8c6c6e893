/*
 * What the functions of POSIX message queues answer, as Linux does: the same program passes natively. The limits are those
 * that /proc/sys/fs/mqueue has without a change.
 */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NAME "/vs-calls"

static char text[8192];
static char *volatile nowhere;
static volatile sig_atomic_t told;
static siginfo_t last;

static void fails_(long result, int error, int line)
{
    if (result != -1 || errno != error) {
        fprintf(stderr, "line %d: result %ld, errno %d instead of %d\n", line, result, errno, error);
        abort();
    }
}
#define FAILS(call, error) fails_((long)(call), error, __LINE__)

static void on_message(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    told++;
    last = *info;
}

static mqd_t small(int flags, long messages, long size)
{
    struct mq_attr attr = { .mq_maxmsg = messages, .mq_msgsize = size, .mq_flags = O_NONBLOCK, .mq_curmsgs = 7 };
    return mq_open(NAME, flags | O_CREAT, 0666, &attr);
}

static void names(void)
{
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[256] = 0;
    FAILS(mq_open("vs", O_RDWR), EINVAL);
    FAILS(mq_open("/", O_RDWR | O_CREAT, 0600, NULL), ENOENT);
    FAILS(mq_open("/a/b", O_RDWR | O_CREAT, 0600, NULL), EACCES);
    FAILS(mq_open("/..", O_RDWR | O_CREAT, 0600, NULL), EACCES);
    FAILS(mq_open(longest, O_RDWR), ENOENT);
    longest[256] = 'a', longest[257] = 0;
    FAILS(mq_open(longest, O_RDWR), ENAMETOOLONG);
    FAILS(mq_unlink(longest), ENAMETOOLONG);
    FAILS(mq_unlink("vs"), EINVAL);
    FAILS(mq_unlink(NAME), ENOENT);
    FAILS(mq_open(NAME, O_RDWR), ENOENT);
    FAILS(small(O_RDWR, 0, 8), EINVAL);
    FAILS(small(O_RDWR, 1, 0), EINVAL);
    FAILS(small(O_RDWR, 1 << 20, 8), EINVAL);
    FAILS(mq_unlink(NAME), ENOENT);
    FAILS(syscall(SYS_mq_open, NULL, O_RDWR, 0, NULL), EFAULT);
}

static void attributes(mqd_t q, mqd_t reader)
{
    struct mq_attr attr, old;
    struct stat st;
    FAILS(small(O_RDWR | O_EXCL, 2, 8), EEXIST);
    FAILS(mq_open(NAME, 3), EINVAL);
    MUST(mq_getattr(q, &attr));
    assert(attr.mq_flags == 0 && attr.mq_maxmsg == 2 && attr.mq_msgsize == 8 && attr.mq_curmsgs == 0);
    MUST(mq_getattr(reader, &attr));
    assert(attr.mq_flags == O_NONBLOCK);
    assert(fcntl(q, F_GETFL) == O_RDWR && fcntl(q, F_GETFD) == FD_CLOEXEC);
    assert(fcntl(reader, F_GETFL) == (O_RDONLY | O_NONBLOCK | O_APPEND));
    MUST(fstat(q, &st));
    assert(st.st_mode == (S_IFREG | 0640) && st.st_size == 80 && st.st_nlink == 1);
    attr.mq_flags = O_NONBLOCK;
    MUST(mq_setattr(q, &attr, &old));
    assert(old.mq_flags == 0 && fcntl(q, F_GETFL) == (O_RDWR | O_NONBLOCK));
    FAILS(mq_receive(q, text, 8, NULL), EAGAIN);
    attr.mq_flags = 0;
    MUST(mq_setattr(q, &attr, NULL));
    attr.mq_flags = 1;
    FAILS(mq_setattr(q, &attr, NULL), EINVAL);
    FAILS(mq_getattr(0, &attr), EBADF);
    FAILS(write(q, "a", 1), EINVAL);
    FAILS(write(reader, "a", 1), EBADF);
}

static void messages(mqd_t q, mqd_t reader)
{
    struct timespec past = { 1, 0 }, wrong = { 1, 1000000000 };
    unsigned priority;
    FAILS(mq_send(reader, "a", 1, 0), EBADF);
    FAILS(mq_send(0, "a", 1, 0), EBADF);
    FAILS(mq_send(-1, "a", 1, 32768), EINVAL);
    FAILS(mq_send(q, "123456789", 9, 0), EMSGSIZE);
    FAILS(mq_send(q, nowhere, 1, 0), EFAULT);
    FAILS(mq_receive(q, text, 7, NULL), EMSGSIZE);
    FAILS(mq_receive(reader, text, 8, NULL), EAGAIN);
    MUST(mq_send(q, nowhere, 0, 0));
    assert(mq_receive(q, text, 8, &priority) == 0 && priority == 0);

    MUST(mq_send(q, "low", 3, 1));
    MUST(mq_send(q, "high", 4, 32767));
    FAILS(mq_timedsend(q, "c", 1, 0, &past), ETIMEDOUT);
    FAILS(mq_timedsend(q, "c", 1, 0, &wrong), EINVAL);
    FAILS(mq_timedsend(-1, "c", 1, 0, &wrong), EINVAL);
    assert(mq_receive(q, text, sizeof text, &priority) == 4 && priority == 32767 && memcmp(text, "high", 4) == 0);
    MUST(mq_timedsend(q, "new", 3, 1, &past));
    assert(mq_timedreceive(q, text, 8, &priority, &past) == 3 && priority == 1 && memcmp(text, "low", 3) == 0);
    assert(mq_receive(reader, text, 8, NULL) == 3 && memcmp(text, "new", 3) == 0);
    FAILS(mq_timedreceive(q, text, 8, &priority, &past), ETIMEDOUT);
    FAILS(mq_timedreceive(reader, text, 8, &priority, &past), EAGAIN);
}

static void events(mqd_t q)
{
    struct pollfd asked = { q, POLLIN | POLLOUT, 0 };
    struct epoll_event wanted = { .events = EPOLLIN | EPOLLOUT | EPOLLET }, got;
    assert(poll(&asked, 1, 0) == 1 && asked.revents == POLLOUT);
    int epoll = epoll_create1(0);
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, q, &wanted));
    assert(epoll_wait(epoll, &got, 1, 0) == 1 && got.events == EPOLLOUT && epoll_wait(epoll, &got, 1, 0) == 0);
    MUST(mq_send(q, "a", 1, 0));
    assert(epoll_wait(epoll, &got, 1, 0) == 1 && got.events == (EPOLLIN | EPOLLOUT));
    MUST(mq_send(q, "a", 1, 0));
    assert(epoll_wait(epoll, &got, 1, 0) == 1 && got.events == EPOLLIN && epoll_wait(epoll, &got, 1, 0) == 0);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(q, &in);
    assert(select(q + 1, &in, NULL, NULL, NULL) == 1 && FD_ISSET(q, &in));
    assert(mq_receive(q, text, 8, NULL) == 1 && mq_receive(q, text, 8, NULL) == 1);
    assert(epoll_wait(epoll, &got, 1, 0) == 1 && got.events == EPOLLOUT);
    MUST(close(epoll));
}

static mqd_t notified;

static void another(void)
{
    struct sigevent none = { .sigev_notify = SIGEV_NONE };
    MUST(mq_notify(notified, NULL));
    FAILS(mq_notify(notified, &none), EBUSY);
    MUST(mq_close(notified));
}

static void notification(mqd_t q, mqd_t reader)
{
    struct sigaction action = { .sa_sigaction = on_message, .sa_flags = SA_SIGINFO };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42 };
    struct sigevent none = { .sigev_notify = SIGEV_NONE }, wrong = { .sigev_notify = 77 };
    MUST(sigaction(SIGUSR1, &action, NULL));
    FAILS(mq_notify(-1, &wrong), EINVAL);
    FAILS(mq_notify(0, &none), EBADF);
    FAILS(mq_notify(-1, NULL), EBADF);
    MUST(mq_notify(q, &event));
    FAILS(mq_notify(reader, &none), EBUSY);
    MUST(mq_send(q, "hello", 5, 3));
    assert(told == 1 && last.si_code == SI_MESGQ && last.si_pid == getpid() && last.si_value.sival_int == 42);
    MUST(mq_notify(q, &event));
    MUST(mq_send(q, "more", 4, 3));
    assert(told == 1);
    assert(mq_receive(q, text, 8, NULL) == 5 && mq_receive(q, text, 8, NULL) == 4);
    MUST(mq_send(q, "again", 5, 3));
    assert(told == 2 && mq_receive(q, text, 8, NULL) == 5);
    MUST(mq_send(q, "again", 5, 3));
    assert(told == 2 && mq_receive(q, text, 8, NULL) == 5);
    /* A request goes with any descriptor that its process closes, not with those of others. */
    MUST(mq_notify(q, &none));
    notified = q;
    assert(reap(fork_run(another)) == 0);
    FAILS(mq_notify(q, &none), EBUSY);
    MUST(close(dup(q)));
    MUST(mq_notify(q, &none));
    MUST(mq_notify(q, NULL));
    MUST(mq_notify(q, NULL));
}

int main(void)
{
    struct stat st;
    umask(027);
    mq_unlink(NAME);
    names();
    mqd_t q = small(O_RDWR | O_EXCL, 2, 8);
    mqd_t reader = mq_open(NAME, O_RDONLY | O_NONBLOCK | O_APPEND);
    assert(q >= 0 && reader >= 0);
    attributes(q, reader);
    messages(q, reader);
    events(q);
    notification(q, reader);

    /* It lives on without its name. */
    MUST(mq_unlink(NAME));
    FAILS(mq_unlink(NAME), ENOENT);
    FAILS(mq_open(NAME, O_RDWR), ENOENT);
    MUST(mq_send(q, "kept", 4, 0));
    assert(fstat(q, &st) == 0 && st.st_nlink == 0);
    mqd_t other = mq_open(NAME, O_RDWR | O_CREAT, 0600, NULL);
    struct mq_attr attr;
    MUST(mq_getattr(other, &attr));
    assert(attr.mq_curmsgs == 0 && attr.mq_maxmsg == 10 && attr.mq_msgsize == 8192);
    assert(mq_receive(reader, text, 8, NULL) == 4);
    MUST(mq_close(q));
    FAILS(mq_close(q), EBADF);
    FAILS(mq_send(q, "a", 1, 0), EBADF);
    MUST(mq_close(reader));
    MUST(mq_send(other, "stays", 5, 0));
    MUST(mq_close(other));
    other = mq_open(NAME, O_RDONLY);
    assert(mq_receive(other, text, sizeof text, NULL) == 5);
    MUST(mq_unlink(NAME));
    return 0;
}
