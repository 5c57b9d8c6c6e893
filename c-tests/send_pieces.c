/* A large send on a stream socket is made in pieces: its reader finds a part, a peer that goes cuts a local one off. TCP keeps its
   lock meanwhile: what others send or shut down comes after all of it. The first argument says what is shown. */
#include "t.h"
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#define LOCAL_PIECE 36544
#define SEGMENT 32741

static int s[2];
static size_t size;
static char data[100000], other[100000], got[200000];
static ssize_t sent;

static void tcp(void)
{
    struct sockaddr_in a = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(listener, (void *)&a, len));
    MUST(listen(listener, 1));
    MUST(getsockname(listener, (void *)&a, &len));
    s[0] = socket(AF_INET, SOCK_STREAM, 0);
    MUST(connect(s[0], (void *)&a, len));
    s[1] = accept(listener, NULL, NULL);
    assert(s[1] >= 0);
}

static void *sends(void *what)
{
    sent = send(s[0], what, size, MSG_NOSIGNAL);
    return what;
}

static void *shuts(void *unused)
{
    MUST(shutdown(s[0], SHUT_WR));
    return unused;
}

/* What has arrived: nothing, one piece, or all. */
static void part(size_t piece)
{
    pthread_t t = go(sends, data);
    ssize_t n = recv(s[1], got, sizeof got, MSG_DONTWAIT);
    assert(n == -1 ? errno == EAGAIN : n == (ssize_t)piece || n == (ssize_t)size);
    join(t);
    assert(sent == (ssize_t)size);
    assert(n != (ssize_t)piece);
}

/* The peer goes with something unread. Gives what was sent. */
static ssize_t cut(void)
{
    pthread_t t = go(sends, data);
    char byte;
    assert(read(s[1], &byte, 1) == 1);
    MUST(close(s[1]));
    join(t);
    return sent;
}

static void *reads_all(void *unused)
{
    assert(recv(s[1], got, 2 * size, MSG_WAITALL) == 2 * (ssize_t)size);
    return unused;
}

/* Two send at once: true if what they sent is not mixed. */
static int apart(void)
{
    pthread_t t = go(sends, data), u = go(sends, other);
    join(t);
    join(u);
    reads_all(NULL);
    for (size_t i = 1; i < size; i++)
        if (got[i] != got[0]) return 0;
    return 1;
}

/* Its own process shuts it down meanwhile. Gives what was sent. */
static ssize_t shut(void)
{
    pthread_t t = go(sends, data), u = go(shuts, NULL);
    ssize_t n, all = 0;
    join(t);
    join(u);
    while ((n = recv(s[1], got, sizeof got, 0)) > 0) all += n;
    assert(n == 0 && all == (sent > 0 ? sent : 0));
    return sent;
}

/* The sender is killed meanwhile: what it has begun to send comes whole. */
static void killed(void)
{
    pid_t pid = fork();
    ssize_t n, all = 0;
    if (pid == 0) {
        sends(data);
        pause();
    }
    close(s[0]);
    MUST(kill(pid, SIGKILL));
    while ((n = recv(s[1], got, sizeof got, 0)) > 0) all += n;
    assert(n == 0 && (all == 0 || all == (ssize_t)size));
    assert(waitpid(pid, NULL, 0) == pid);
}

int main(int argc, char **argv)
{
    int is_tcp = argc > 1 && strncmp(argv[1], "tcp", 3) == 0;
    memset(other, 1, sizeof other);
    if (is_tcp) tcp();
    else MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    size = is_tcp ? 2 * SEGMENT : 2 * LOCAL_PIECE;
    if (arg_is(argc, argv, "small")) size = LOCAL_PIECE, part(0);
    if (arg_is(argc, argv, "part")) part(LOCAL_PIECE);
    if (arg_is(argc, argv, "tcp_small")) size = SEGMENT, part(0);
    if (arg_is(argc, argv, "tcp_part")) part(SEGMENT);
    if (arg_is(argc, argv, "cut")) assert(cut() == (ssize_t)size);
    if (arg_is(argc, argv, "cut_off")) assert(cut() == (ssize_t)size || sent == LOCAL_PIECE);
    if (arg_is(argc, argv, "tcp_cut")) assert(cut() == (ssize_t)size);
    if (arg_is(argc, argv, "mixed")) assert(apart());
    if (arg_is(argc, argv, "tcp_apart")) assert(apart());
    if (arg_is(argc, argv, "shut")) assert(shut() != LOCAL_PIECE);
    if (arg_is(argc, argv, "tcp_shut")) assert(shut() != SEGMENT);
    if (arg_is(argc, argv, "killed") || arg_is(argc, argv, "tcp_killed")) killed();
    return 0;
}
