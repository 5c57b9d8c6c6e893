/* Handlers that do not return: they end the process, execute another program, or jump.  What the call that they came before or after has, or was
 * given, goes with it: the client of a server that is gone is told.  Not: it waits for ever. */
#include "t.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

static sigjmp_buf back;

static void ends(int signal)
{
    (void)signal;
    _exit(0);
}

static void executes(int signal)
{
    (void)signal;
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
}

static void jumps(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

static void on(int signal, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    MUST(sigaction(signal, &action, NULL));
}

static struct sockaddr_un name = { AF_UNIX, "s" };
static struct sockaddr *const at = (struct sockaddr *)&name;

static int listener(void)
{
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(s, at, sizeof name));
    MUST(listen(s, 4));
    return s;
}

static void server(void (*handler)(int), int flags)
{
    int s = listener(), c;
    char byte;
    pid_t child;

    on(SIGTERM, handler);
    child = fork();
    if (child == 0) {
        accept4(s, NULL, NULL, flags);
        _exit(1);
    }
    c = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(connect(c, at, sizeof name));
    MUST(close(s));
    MUST(kill(child, SIGTERM));
    assert(read(c, &byte, 1) <= 0);
    reap(child);
}

static void send_descriptor(int s, int fd)
{
    char byte = 'x', control[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    sendmsg(s, &message, MSG_NOSIGNAL);
}

static void receive(int s, int asks)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    if (asks)
        recvmsg(s, &message, 0);
    else
        recv(s, &byte, 1, 0);
}

static void descriptor(int asks)
{
    int s[2], p[2];
    char byte;
    pid_t child;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    on(SIGTERM, ends);
    child = fork();
    if (child == 0) {
        close(s[0]);
        receive(s[1], asks);
        _exit(1);
    }
    MUST(pipe(p));
    close(s[1]);
    send_descriptor(s[0], p[1]);
    close(p[1]);
    MUST(kill(child, SIGTERM));
    reap(child);
    close(s[0]);
    assert(read(p[0], &byte, 1) == 0);
}

/* Whether the connection has got its number before the handler ran: both may be. */
static void jump(int may_be_taken)
{
    int s = listener(), free_number = dup(s), next;
    char byte;
    pid_t child;

    close(free_number);
    on(SIGTERM, SIG_IGN);
    child = fork();
    if (child == 0) {
        int c = socket(AF_UNIX, SOCK_STREAM, 0);
        MUST(connect(c, at, sizeof name));
        close(s);
        kill(getppid(), SIGTERM);
        read(c, &byte, 1);
        _exit(0);
    }
    if (sigsetjmp(back, 1) == 0) {
        on(SIGTERM, jumps);
        accept(s, NULL, NULL);
        on(SIGTERM, SIG_IGN);
    }
    next = dup(s);
    close(s);
    close(next);
    if (fcntl(free_number, F_GETFD) >= 0)
        close(free_number);
    reap(child);
    assert(may_be_taken || next == free_number);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "ends"))
        server(ends, 0);
    else if (arg_is(argc, argv, "executes"))
        server(executes, SOCK_CLOEXEC);
    else if (arg_is(argc, argv, "recvmsg"))
        descriptor(1);
    else if (arg_is(argc, argv, "recv"))
        descriptor(0);
    else
        jump(!arg_is(argc, argv, "buggy"));
    return 0;
}
