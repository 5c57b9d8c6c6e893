/* A TCP socket that was shut down both ways answers data with a reset: both ends hear of it; what had come before can be read. */
#include "t.h"
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

static int end[2];

static void *shuts(void *arg)
{
    (void)arg;
    MUST(shutdown(end[0], SHUT_RDWR));
    return 0;
}

static int error_of(int fd)
{
    int error = -1;
    socklen_t len = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
    return error;
}

static short events(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
    assert(poll(&one, 1, 0) >= 0);
    return one.revents;
}

static void connects(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(listener, (void *)&name, sizeof name));
    MUST(listen(listener, 1));
    MUST(getsockname(listener, (void *)&name, &len));
    end[0] = socket(AF_INET, SOCK_STREAM, 0);
    MUST(connect(end[0], (void *)&name, len));
    end[1] = accept(listener, 0, 0);
    MUST(close(listener));
}

int main(int argc, char **argv)
{
    char bytes[8];
    signal(SIGPIPE, SIG_IGN);
    connects();
    if (arg_is(argc, argv, "race")) {
        pthread_t other = go(shuts, 0);
        assert(send(end[1], "a", 1, 0) == 1 || errno == EPIPE);
        ssize_t second = send(end[1], "b", 1, 0);
        join(other);
        assert(second == 1);
        return 0;
    }
    assert(send(end[1], "abc", 3, 0) == 3);
    shuts(0);
    assert(recv(end[0], bytes, 2, 0) == 2);
    assert(send(end[1], "d", 1, 0) == 1);
    assert(events(end[0]) == (POLLIN | POLLOUT | POLLERR | POLLHUP));
    assert(events(end[1]) == (POLLIN | POLLOUT | POLLERR | POLLHUP));
    assert(send(end[1], "e", 1, 0) == -1 && errno == EPIPE);
    assert(recv(end[1], bytes, 8, 0) == 0);
    assert(shutdown(end[1], SHUT_WR) == -1 && errno == ENOTCONN);
    assert(recv(end[0], bytes, 8, 0) == 1 && bytes[0] == 'c');
    assert(error_of(end[0]) == ECONNRESET && recv(end[0], bytes, 8, 0) == 0);
    /* One that listens to nothing takes data as before: only where it has said its end, too, it does not. */
    connects();
    MUST(shutdown(end[0], SHUT_RD));
    assert(send(end[1], "a", 1, 0) == 1 && recv(end[0], bytes, 8, 0) == 1);
    MUST(shutdown(end[0], SHUT_WR));
    assert(send(end[1], "a", 1, 0) == 1 && error_of(end[1]) == EPIPE);
    assert(recv(end[0], bytes, 8, 0) == -1 && errno == ECONNRESET);
    return 0;
}
