/* Copies of descriptors that a fork makes, closed by the child as its first call and by the parent: who is the last shows.
 * "socket": the parent takes it that its own close was, and that a send finds the other end gone. "pipe": the same, of a poll. "message":
 * the last one is in a message that the child throws away unread. "workers": two children close what they do not need and write a byte
 * each; that they close changes nothing for anybody, since the parent has it still. */
#include "t.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int s[2], q[2];

static void closes(void)
{
    close(s[0]);
}

static void throws_away(void)
{
    close(s[0]);
    close(s[1]);
    close(q[0]);
    close(q[1]);
}

static void writes(void)
{
    close(s[0]);
    if (write(s[1], "x", 1) != 1)
        abort();
}

static void pass(int fd)
{
    char data = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {&data, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    *(int *)CMSG_DATA(c) = fd;
    if (sendmsg(q[0], &m, 0) != 1)
        abort();
}

int main(int argc, char **argv)
{
    pid_t child;
    char byte;

    if (arg_is(argc, argv, "workers")) {
        pid_t worker[2];
        int got = 0;
        MUST(pipe(s));
        for (int i = 0; i < 2; i++)
            worker[i] = fork_run(writes);
        close(s[1]);
        while (read(s[0], &byte, 1) == 1)
            got++;
        assert(got == 2);
        for (int i = 0; i < 2; i++)
            assert(reap(worker[i]) == 0);
        return 0;
    }
    if (arg_is(argc, argv, "pipe")) {
        MUST(pipe(q));
        s[0] = q[1];
        s[1] = q[0];
    } else {
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    }
    if (arg_is(argc, argv, "message")) {
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, q));
        child = fork_run(throws_away);
        pass(s[0]);
        close(q[1]);
    } else {
        child = fork_run(closes);
    }
    close(s[0]);
    if (arg_is(argc, argv, "pipe")) {
        struct pollfd at = {s[1], POLLIN, 0};
        assert(poll(&at, 1, 0) == 1);
    } else {
        assert(send(s[1], "x", 1, MSG_NOSIGNAL) == -1);
    }
    assert(reap(child) == 0);
    return 0;
}
