/*
 * Descriptors of real files in messages (SCM_RIGHTS).  scm_rights VARIANT
 *   stream, dgram, seqpacket
 *            a child reads on where its parent stopped, and the parent where the child stopped: one offset
 *   several  a file, a pipe and an eventfd in one message; MSG_CMSG_CLOEXEC
 *   short    room for one of three: MSG_CTRUNC, and the others are closed
 *   peek     MSG_PEEK gives descriptors too
 *   cross    messages of two sockets, received in the other order, some never
 *   full     no number is left for what comes
 *   bad      descriptors that are none
 *   writer   a child writes through a descriptor that it got
 *   reused   the file is closed, and another one opened at its number, before the message is received
 *   race     buggy: two processes read from the one offset, in either order
 */

#include "t.h"
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int pair[2];

static int text_file(void)
{
    char name[] = "/tmp/scm_rights-XXXXXX";
    int fd = mkstemp(name);

    assert(fd >= 0);
    MUST(unlink(name));
    assert(write(fd, "0123456789", 10) == 10);
    assert(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

union control {
    struct cmsghdr h;
    char room[CMSG_SPACE(8 * sizeof(int))];
};

static ssize_t send_fds(int s, const int *fds, int n)
{
    char byte = 'x';
    struct iovec io = {&byte, 1};
    union control c = {.h = {0}};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(n * sizeof(int))};

    c.h.cmsg_len = CMSG_LEN(n * sizeof(int));
    c.h.cmsg_level = SOL_SOCKET;
    c.h.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&c.h), fds, n * sizeof(int));
    return sendmsg(s, &m, 0);
}

/* Receives up to n descriptors; gives how many came, and the message's flags. */
static int receive_fds(int s, int *fds, int n, int flags, int *told)
{
    char byte;
    struct iovec io = {&byte, 1};
    union control c = {.h = {0}};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_LEN(n * sizeof(int))};
    struct cmsghdr *h;

    assert(recvmsg(s, &m, flags) == 1 && byte == 'x');
    if (told)
        *told = m.msg_flags;
    h = CMSG_FIRSTHDR(&m);
    if (!h)
        return 0;
    assert(h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS);
    n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(h), n * sizeof(int));
    return n;
}

static void expect(int fd, const char *what)
{
    char got[16] = "";

    assert(read(fd, got, strlen(what)) == (ssize_t)strlen(what));
    assert(strcmp(got, what) == 0);
}

static void offset(int type)
{
    MUST(socketpair(AF_UNIX, type, 0, pair));
    pid_t pid = fork();
    if (pid == 0) {
        int fd, told;
        assert(receive_fds(pair[1], &fd, 1, 0, &told) == 1);
        assert(!(told & MSG_CTRUNC) && fcntl(fd, F_GETFD) == 0);
        expect(fd, "345");
        _exit(0);
    }
    int fd = text_file();
    expect(fd, "012");
    assert(send_fds(pair[0], &fd, 1) == 1);
    assert(reap(pid) == 0);
    expect(fd, "6789");
}

static void several(void)
{
    int p[2], fds[8], told;
    uint64_t count = 5;
    char byte = 'p';

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t pid = fork();
    if (pid == 0) {
        assert(receive_fds(pair[1], fds, 8, MSG_CMSG_CLOEXEC, &told) == 3);
        assert(!(told & MSG_CTRUNC));
        for (int i = 0; i < 3; i++)
            assert(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
        expect(fds[0], "0123");
        assert(write(fds[1], &byte, 1) == 1);
        assert(read(fds[2], &count, sizeof count) == sizeof count && count == 5);
        _exit(0);
    }
    MUST(pipe(p));
    fds[0] = text_file();
    fds[1] = p[1];
    fds[2] = eventfd(5, 0);
    assert(send_fds(pair[0], fds, 3) == 1);
    for (int i = 0; i < 3; i++)
        MUST(close(fds[i]));
    expect(p[0], "p");
    assert(reap(pid) == 0);
    assert(read(p[0], &byte, 1) == 0);
}

static void cut_off(void)
{
    int p[2], fds[3], got, told, next;
    char byte;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(pipe(p));
    fds[0] = text_file();
    fds[1] = p[1];
    fds[2] = text_file();
    assert(send_fds(pair[0], fds, 3) == 1);
    MUST(close(p[1]));
    assert(receive_fds(pair[1], &got, 1, 0, &told) == 1);
    assert(told & MSG_CTRUNC);
    expect(got, "01");
    expect(fds[0], "23");
    assert(read(p[0], &byte, 1) == 0);
    next = dup(0);
    assert(next == fds[2] + 1);
}

static void peek(void)
{
    int fd = text_file(), one, two, three;

    MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    assert(send_fds(pair[0], &fd, 1) == 1);
    assert(receive_fds(pair[1], &one, 1, MSG_PEEK, NULL) == 1);
    assert(receive_fds(pair[1], &two, 1, MSG_PEEK, NULL) == 1);
    assert(receive_fds(pair[1], &three, 1, 0, NULL) == 1);
    assert(fd != one && one != two && two != three);
    expect(one, "0");
    expect(two, "1");
    expect(three, "2");
    expect(fd, "3");
}

static void cross(void)
{
    int other[2], a = text_file(), b = text_file(), got;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, other));
    expect(b, "01234");
    assert(send_fds(pair[0], &a, 1) == 1);
    assert(send_fds(other[0], &a, 1) == 1);
    assert(send_fds(other[0], &b, 1) == 1);
    MUST(close(a));
    assert(receive_fds(other[1], &got, 1, 0, NULL) == 1);
    expect(got, "01");
    assert(receive_fds(other[1], &got, 1, 0, NULL) == 1);
    expect(got, "56");
    expect(b, "7");
    MUST(close(other[1]));
    assert(receive_fds(pair[1], &got, 1, 0, NULL) == 1);
    expect(got, "23");
    for (int i = 0; i < 3; i++) {
        assert(send_fds(pair[0], &b, 1) == 1);
        assert(send_fds(pair[1], &got, 1) == 1);
        char byte;
        assert(recv(pair[1], &byte, 1, 0) == 1); /* b is closed. */
    }
    assert(receive_fds(pair[0], &got, 1, 0, NULL) == 1);
    expect(got, "45");
}

static void full(void)
{
    int fd = text_file(), got = -1, told;
    struct rlimit limit;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    assert(send_fds(pair[0], &fd, 1) == 1);
    assert(send_fds(pair[0], &fd, 1) == 1);
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = dup(0);
    MUST(close(limit.rlim_cur));
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    assert(receive_fds(pair[1], &got, 1, 0, &told) == 0);
    assert(told & MSG_CTRUNC);
    MUST(close(0));
    assert(receive_fds(pair[1], &got, 1, 0, &told) == 1);
    assert(got == 0);
    expect(got, "01");
}

static void bad(void)
{
    int fds[2] = {text_file(), 77};

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    assert(send_fds(pair[0], fds, 2) == -1 && errno == EBADF);
    fds[1] = -1;
    assert(send_fds(pair[0], fds, 2) == -1 && errno == EBADF);
    char byte;
    assert(recv(pair[1], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    expect(fds[0], "0");
}

static void writer(void)
{
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
    pid_t pid = fork();
    if (pid == 0) {
        int fd;
        assert(receive_fds(pair[1], &fd, 1, 0, NULL) == 1);
        assert(write(fd, "abc", 3) == 3);
        _exit(0);
    }
    int fd = text_file();
    expect(fd, "01");
    assert(send_fds(pair[0], &fd, 1) == 1);
    assert(reap(pid) == 0);
    expect(fd, "56");
    assert(lseek(fd, 0, SEEK_SET) == 0);
    expect(fd, "01abc56");
}

static void reused(void)
{
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t pid = fork();
    if (pid == 0) {
        int fd;
        assert(receive_fds(pair[1], &fd, 1, 0, NULL) == 1);
        expect(fd, "89");
        _exit(0);
    }
    int fd = text_file(), again;
    assert(lseek(fd, 8, SEEK_SET) == 8);
    assert(send_fds(pair[0], &fd, 1) == 1);
    MUST(close(fd));
    again = text_file();
    assert(again == fd);
    assert(reap(pid) == 0);
    expect(again, "01");
}

static void race(void)
{
    pthread_mutex_t *m = shared(sizeof *m);
    pthread_mutexattr_t a;

    MUST(pthread_mutexattr_init(&a));
    MUST(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutex_init(m, &a));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t pid = fork();
    if (pid == 0) {
        int fd;
        assert(receive_fds(pair[1], &fd, 1, 0, NULL) == 1);
        MUST(pthread_mutex_lock(m));
        char got[2];
        assert(read(fd, got, 2) == 2);
        MUST(pthread_mutex_unlock(m));
        _exit(0);
    }
    int fd = text_file();
    assert(send_fds(pair[0], &fd, 1) == 1);
    MUST(pthread_mutex_lock(m));
    expect(fd, "01");
    MUST(pthread_mutex_unlock(m));
    assert(reap(pid) == 0);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "stream")) offset(SOCK_STREAM);
    else if (arg_is(argc, argv, "dgram")) offset(SOCK_DGRAM);
    else if (arg_is(argc, argv, "seqpacket")) offset(SOCK_SEQPACKET);
    else if (arg_is(argc, argv, "several")) several();
    else if (arg_is(argc, argv, "short")) cut_off();
    else if (arg_is(argc, argv, "peek")) peek();
    else if (arg_is(argc, argv, "cross")) cross();
    else if (arg_is(argc, argv, "full")) full();
    else if (arg_is(argc, argv, "bad")) bad();
    else if (arg_is(argc, argv, "writer")) writer();
    else if (arg_is(argc, argv, "reused")) reused();
    else if (arg_is(argc, argv, "race")) race();
    else return 2;
    return 0;
}
