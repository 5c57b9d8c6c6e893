/* Who sent a message over a local socket is kept with it only where one of the ends asked for it when it was sent. */
#include "t.h"
#include <sys/socket.h>

static int pair[2];

static void *sends(void *arg)
{
    assert(send(pair[1], arg, 1, 0) == 1);
    return 0;
}

static void asks(int fd, int on)
{
    MUST(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
}

/* Who sent what comes: the process, or 0. */
static pid_t sender(int fd)
{
    char byte;
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct ucred who;
    assert(recvmsg(fd, &message, 0) == 1 && CMSG_FIRSTHDR(&message));
    memcpy(&who, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof who);
    assert(who.uid == (who.pid ? getuid() : 65534));
    return who.pid;
}

int main(int argc, char **argv)
{
    MUST(socketpair(AF_UNIX, arg_is(argc, argv, "stream") ? SOCK_STREAM : SOCK_DGRAM, 0, pair));
    if (argc > 1) {
        pthread_t other = go(sends, "x");
        asks(pair[0], 1);
        pid_t who = sender(pair[0]);
        join(other);
        assert(who == getpid());
        return 0;
    }
    sends("a");
    asks(pair[0], 1);
    sends("b");
    assert(sender(pair[0]) == 0 && sender(pair[0]) == getpid());
    asks(pair[0], 0);
    asks(pair[1], 1);
    sends("c");
    asks(pair[1], 0);
    sends("d");
    asks(pair[0], 1);
    assert(sender(pair[0]) == getpid() && sender(pair[0]) == 0);
    return 0;
}
