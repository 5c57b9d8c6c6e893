/*
 * Threads and processes that talk through sockets.  sockets VARIANT
 *   requests    two processes send each other requests of 400,000 bytes before either receives
 *   small       the same with requests that the sockets hold
 *   listener    main ends by closing the listening socket and joins the worker, which accept does not let go
 *   shutdown    the same with a shutdown, which lets it go
 *   stuck       main closes a connection that a worker receives from, and joins it
 *   halfclose   the client waits for the answer without having ended its request
 *   ended       the same with shutdown(SHUT_WR)
 *   refused     the client may connect before the server listens, and does not expect to be refused
 *   listening   the same where the server listens before there is a client
 *   backlog     three clients connect to a queue of two that nobody empties
 *   datagrams   a server of local datagrams answers two clients, one of which forgets to take a name
 *   named       the same with names for both
 *   twelve      the twelfth datagram waits for a receiver that waits for the sender
 *   lost        of 300 UDP datagrams that nobody receives meanwhile not all are kept
 *   reset       the peer closes with something unread: ECONNRESET, then EPIPE
 *   rights      a pipe's end goes through a socket; the reader's end of the file comes when the message is gone too
 *   path        a socket with a path: two servers race for it
 */

#include "t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CHECK(what) assert(what)

static int pair[2], listener, connection;
static struct sockaddr_in here;

static void send_all(int fd, const char *data, long n)
{
    for (long at = 0, put; at < n; at += put)
        CHECK((put = send(fd, data + at, n - at, 0)) > 0);
}

static void receive_all(int fd, char *data, long n)
{
    for (long at = 0, got; at < n; at += got)
        CHECK((got = recv(fd, data + at, n - at, 0)) > 0);
}

static void requests(long n)
{
    char *data = calloc(1, n);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    int own = pair[child == 0];
    close(pair[child != 0]);
    send_all(own, data, n);
    receive_all(own, data, n);
    if (child == 0)
        _exit(0);
    MUST(waitpid(child, NULL, 0) != child);
}

static void tcp_listen(int backlog)
{
    socklen_t len = sizeof here;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(listener, (void *)&here, sizeof here));
    MUST(listen(listener, backlog));
    MUST(getsockname(listener, (void *)&here, &len));
}

static int tcp_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (void *)&here, sizeof here) == 0 ? fd : -1;
}

static void *acceptor(void *arg)
{
    int fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0)
        close(fd);
    return arg;
}

static void server_ends(int with_shutdown)
{
    tcp_listen(1);
    pthread_t worker = go(acceptor, NULL);
    close(tcp_connect());
    if (with_shutdown)
        MUST(shutdown(listener, SHUT_RDWR));
    close(listener);
    join(worker);
}

static void *receiver(void *arg)
{
    char c;
    while (recv(connection, &c, 1, 0) > 0)
        ;
    return arg;
}

static void stuck(void)
{
    tcp_listen(1);
    int client = tcp_connect();
    connection = accept(listener, NULL, NULL);
    pthread_t worker = go(receiver, NULL);
    send(client, "x", 1, 0);
    close(connection);
    join(worker);
}

static void *count_bytes(void *arg)
{
    char buffer[64];
    int fd = accept(listener, NULL, NULL);
    ssize_t n, sum = 0;
    while ((n = recv(fd, buffer, sizeof buffer, 0)) > 0)
        sum += n;
    CHECK(n == 0 && send(fd, &sum, sizeof sum, 0) == sizeof sum);
    close(fd);
    return arg;
}

static void half_close(int ends)
{
    ssize_t sum = 0;
    tcp_listen(1);
    pthread_t server = go(count_bytes, NULL);
    int fd = tcp_connect();
    send_all(fd, "request", 7);
    if (ends)
        MUST(shutdown(fd, SHUT_WR));
    CHECK(recv(fd, &sum, sizeof sum, MSG_WAITALL) == sizeof sum && sum == 7);
    CHECK(recv(fd, &sum, sizeof sum, 0) == 0);
    close(fd);
    join(server);
}

static void *serve_one(void *arg)
{
    if (arg)
        MUST(listen(listener, 1));
    close(accept(listener, NULL, NULL));
    return NULL;
}

static void refused(int late)
{
    char c;
    socklen_t len = sizeof here;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    here.sin_family = AF_INET;
    MUST(bind(listener, (void *)&here, sizeof here));
    MUST(getsockname(listener, (void *)&here, &len));
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!late)
        MUST(listen(listener, 1));
    pthread_t server = go(serve_one, late ? &here : NULL);
    int fd = tcp_connect();
    CHECK(fd >= 0);
    CHECK(recv(fd, &c, 1, 0) == 0);
    join(server);
}

static void *one_client(void *arg)
{
    CHECK(tcp_connect() >= 0);
    return arg;
}

static void backlog(void)
{
    pthread_t t[3];
    tcp_listen(1);
    for (int i = 0; i < 3; i++)
        t[i] = go(one_client, NULL);
    for (int i = 0; i < 3; i++)
        join(t[i]);
}

static struct sockaddr_un name_of(char c)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    name.sun_path[1] = c;
    return name;
}

static int server;

/* Made beforehand: which of two threads gets which number is not what this is about (fd_numbers.c). */
static int clients[2];

static void datagram_client(char name, int named)
{
    char c = name;
    struct sockaddr_un own = name_of(name), to = name_of('s');
    int fd = clients[name - 'a'];
    if (named)
        MUST(bind(fd, (void *)&own, 4));
    MUST(connect(fd, (void *)&to, 4));
    CHECK(send(fd, &c, 1, 0) == 1);
    CHECK(recv(fd, &c, 1, 0) == 1 && c == name);
    close(fd);
}

static void *client_a(void *arg)
{
    datagram_client('a', 1);
    return arg;
}

static void *client_b(void *arg)
{
    datagram_client('b', arg != NULL);
    return arg;
}

static void datagrams(int named)
{
    struct sockaddr_un own = name_of('s');
    server = socket(AF_UNIX, SOCK_DGRAM, 0);
    MUST(bind(server, (void *)&own, 4));
    clients[0] = socket(AF_UNIX, SOCK_DGRAM, 0);
    clients[1] = socket(AF_UNIX, SOCK_DGRAM, 0);
    pthread_t a = go(client_a, NULL), b = go(client_b, named ? &own : NULL);
    for (int i = 0; i < 2; i++) {
        char c;
        struct sockaddr_un from;
        socklen_t len = sizeof from;
        CHECK(recvfrom(server, &c, 1, 0, (void *)&from, &len) == 1);
        if (len > 0)
            CHECK(sendto(server, &c, 1, 0, (void *)&from, len) == 1);
    }
    join(a);
    join(b);
}

static sem_t sent;

static void *late_receiver(void *arg)
{
    char c;
    MUST(sem_wait(&sent));
    CHECK(recv(server, &c, 1, 0) == 1);
    return arg;
}

static void twelve(void)
{
    struct sockaddr_un own = name_of('s');
    server = socket(AF_UNIX, SOCK_DGRAM, 0);
    MUST(bind(server, (void *)&own, 4));
    MUST(sem_init(&sent, 0, 0));
    pthread_t t = go(late_receiver, NULL);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    for (int i = 0; i < 12; i++)
        CHECK(sendto(fd, "x", 1, 0, (void *)&own, 4) == 1);
    MUST(sem_post(&sent));
    join(t);
}

static void lost(void)
{
    socklen_t len = sizeof here;
    int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0), got = 0;
    char c;
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(in, (void *)&here, sizeof here));
    MUST(getsockname(in, (void *)&here, &len));
    for (int i = 0; i < 300; i++)
        CHECK(sendto(out, "x", 1, 0, (void *)&here, sizeof here) == 1);
    while (recv(in, &c, 1, MSG_DONTWAIT) == 1)
        got++;
    CHECK(got == 300);
}

static void *peer_leaves(void *arg)
{
    int fd = accept(listener, NULL, NULL);
    struct pollfd p = {fd, POLLIN, 0};
    CHECK(poll(&p, 1, -1) == 1);
    close(fd);
    return arg;
}

static void reset(void)
{
    char c;
    signal(SIGPIPE, SIG_IGN);
    tcp_listen(1);
    pthread_t t = go(peer_leaves, NULL);
    int fd = tcp_connect();
    send_all(fd, "unread", 6);
    CHECK(recv(fd, &c, 1, 0) == -1 && errno == ECONNRESET);
    CHECK(send(fd, "x", 1, 0) == -1 && errno == EPIPE);
    join(t);
}

static void rights(void)
{
    int ends[2];
    char c, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec io = {&c, 1};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        int fd;
        close(ends[0]), close(ends[1]), close(pair[0]);
        CHECK(recvmsg(pair[1], &m, 0) == 1 && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_RIGHTS);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
        CHECK(write(fd, "through", 7) == 7);
        _exit(0);
    }
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &ends[1], sizeof(int));
    CHECK(sendmsg(pair[0], &m, 0) == 1);
    close(ends[1]);
    char text[8] = "";
    CHECK(read(ends[0], text, 7) == 7 && strcmp(text, "through") == 0);
    CHECK(read(ends[0], text, 1) == 0);
    MUST(waitpid(child, NULL, 0) != child);
}

static char directory[] = "/tmp/vsrun-test-XXXXXX";

static void *path_server(void *arg)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    snprintf(own.sun_path, sizeof own.sun_path, "%s/s", directory);
    int fd = *(int *)arg;
    int first = bind(fd, (void *)&own, sizeof own) == 0;
    CHECK(first || errno == EADDRINUSE);
    if (first) {
        MUST(listen(fd, 1));
        int client = accept(fd, NULL, NULL);
        MUST(unlink(own.sun_path));
        close(client);
    } else {
        char c;
        while (connect(fd, (void *)&own, sizeof own) != 0) {
            CHECK(errno == ECONNREFUSED);
            sched_yield();
        }
        CHECK(recv(fd, &c, 1, 0) == 0);
    }
    return arg;
}

static void path(void)
{
    CHECK(mkdtemp(directory));
    clients[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    clients[1] = socket(AF_UNIX, SOCK_STREAM, 0);
    pthread_t a = go(path_server, &clients[0]), b = go(path_server, &clients[1]);
    join(a);
    join(b);
    close(clients[0]);
    close(clients[1]);
    MUST(rmdir(directory));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
#define IS(word) (strcmp(what, word) == 0)
    if (IS("requests") || IS("small"))
        requests(IS("small") ? 1000 : 400000);
    else if (IS("listener") || IS("shutdown"))
        server_ends(IS("shutdown"));
    else if (IS("stuck"))
        stuck();
    else if (IS("halfclose") || IS("ended"))
        half_close(IS("ended"));
    else if (IS("refused") || IS("listening"))
        refused(IS("refused"));
    else if (IS("backlog"))
        backlog();
    else if (IS("datagrams") || IS("named"))
        datagrams(IS("named"));
    else if (IS("twelve"))
        twelve();
    else if (IS("lost"))
        lost();
    else if (IS("reset"))
        reset();
    else if (IS("rights"))
        rights();
    else if (IS("path"))
        path();
    else
        return 2;
    return 0;
}
