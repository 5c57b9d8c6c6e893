/*
 * Processes and threads that talk through pipes.  pipes VARIANT
 *   capacity   the parent writes a request of 200,000 bytes before it reads the answer, which the child sends meanwhile
 *   small      the same with a request that the pipes hold
 *   both       the same, but the parent reads while it writes (poll)
 *   open       the child reads until the end of the file, but has kept the pipe's other end open
 *   closed     the same with the end closed
 *   broken     the reader goes away early; the writer handles EPIPE
 *   sigpipe    the same without handling: SIGPIPE ends the writer
 *   atomic     two writers, records of 16 bytes: no record is torn
 *   torn       two writers of more than a page: records may be torn
 *   nonblock   a writer fills the pipe without waiting: 16 buffers of a page
 *   merge      writes of 3000 bytes take a buffer each: the 17th does not fit
 *   select     a thread waits with select for two pipes, which two others write to
 *   lost       a short write whose rest the caller forgets
 *   kept       the same with a caller that waits and writes the rest
 *   again      /dev/fd/N opens the pipe once more
 */

#include "t.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>

#define CHECK(what) assert(what)

static int down[2], up[2];

static void echo(void)
{
    char buffer[65536];
    ssize_t n;
    close(down[1]);
    close(up[0]);
    while ((n = read(down[0], buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0, put; at < n; at += put)
            if ((put = write(up[1], buffer + at, n - at)) < 0)
                _exit(3);
    _exit(n < 0);
}

static void request(long size, int with_poll)
{
    char *text = calloc(1, size), buffer[65536];
    long sent = 0, got = 0;
    ssize_t n;
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    if (fork() == 0)
        echo();
    close(down[0]);
    close(up[1]);
    if (with_poll) {
        CHECK(fcntl(down[1], F_SETFL, O_NONBLOCK) == 0);
        while (got < size) {
            struct pollfd p[2] = {{up[0], POLLIN, 0}, {sent < size ? down[1] : -1, POLLOUT, 0}};
            CHECK(poll(p, 2, -1) > 0);
            if (p[1].revents & POLLOUT && (n = write(down[1], text + sent, size - sent)) > 0)
                sent += n;
            if (p[0].revents & POLLIN && (n = read(up[0], buffer, sizeof buffer)) > 0)
                got += n;
        }
        close(down[1]);
    } else {
        CHECK(write(down[1], text, size) == size);
        close(down[1]);
        while ((n = read(up[0], buffer, sizeof buffer)) > 0)
            got += n;
    }
    CHECK(got == size);
    int status;
    CHECK(wait(&status) > 0 && status == 0);
}

static void end_of_file(int close_it)
{
    char c;
    CHECK(pipe(down) == 0);
    if (fork() == 0) {
        if (close_it)
            close(down[1]);
        while (read(down[0], &c, 1) > 0)
            ;
        _exit(0);
    }
    close(down[0]);
    CHECK(write(down[1], "ab", 2) == 2);
    close(down[1]);
    CHECK(wait(NULL) > 0);
}

static void broken(int handled)
{
    char c;
    if (handled)
        signal(SIGPIPE, SIG_IGN);
    CHECK(pipe(down) == 0);
    if (fork() == 0) {
        close(down[1]);
        CHECK(read(down[0], &c, 1) == 1);
        _exit(0);
    }
    close(down[0]);
    CHECK(write(down[1], "a", 1) == 1);
    if (write(down[1], "b", 1) < 0)
        CHECK(errno == EPIPE);
    wait(NULL);
}

static void *write_records(void *arg)
{
    long size = 16, which = (long)arg;
    static char text[2][12288];
    if (which >= 2)
        size = 12288, which -= 2;
    memset(text[which], 'a' + which, sizeof text[which]);
    for (int i = 0; i < 2; i++)
        CHECK(write(down[1], text[which], size) == size);
    return NULL;
}

static void records(long first)
{
    pthread_t t[2];
    long size = first < 2 ? 16 : 12288;
    char buffer[12288];
    CHECK(pipe(down) == 0);
    CHECK(first < 2 || fcntl(down[1], F_SETPIPE_SZ, 12288) == 16384);
    for (long i = 0; i < 2; i++)
        CHECK(pthread_create(&t[i], NULL, write_records, (void *)(first + i)) == 0);
    for (int i = 0; i < 4; i++) {
        long got = 0;
        while (got < size)
            got += read(down[0], buffer + got, size - got);
        for (long k = 1; k < size; k++)
            CHECK(buffer[k] == buffer[0]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void fill(long piece, long pieces)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    CHECK(pipe2(down, O_NONBLOCK) == 0);
    CHECK(read(down[0], text, 1) == -1 && errno == EAGAIN);
    for (long i = 0; i < pieces; i++)
        CHECK(write(down[1], text, piece) == piece);
    CHECK(write(down[1], text, piece) == -1 && errno == EAGAIN);
    CHECK(fcntl(down[1], F_GETPIPE_SZ) == 65536);
}

static void *write_one(void *arg)
{
    CHECK(write(*(int *)arg, "z", 1) == 1);
    return NULL;
}

static void select_two(void)
{
    pthread_t t[2];
    int open = 2;
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    pthread_create(&t[0], NULL, write_one, &down[1]);
    pthread_create(&t[1], NULL, write_one, &up[1]);
    while (open > 0) {
        fd_set set;
        char c;
        FD_ZERO(&set);
        FD_SET(down[0], &set);
        FD_SET(up[0], &set);
        int ready = select(64, &set, NULL, NULL, NULL);
        CHECK(ready > 0 && ready == FD_ISSET(down[0], &set) + FD_ISSET(up[0], &set));
        if (FD_ISSET(down[0], &set))
            CHECK(read(down[0], &c, 1) == 1), open--;
        if (FD_ISSET(up[0], &set))
            CHECK(read(up[0], &c, 1) == 1), open--;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

/* The reader makes room for a part of what the writer has, in which order: then the rest is lost. */
static void lost(int kept)
{
    static char text[65536 + 4096];
    long got = 0;
    ssize_t n;
    CHECK(pipe(down) == 0);
    if (fork() == 0) {
        close(down[0]);
        fcntl(down[1], F_SETFL, O_NONBLOCK);
        long sent = write(down[1], text, sizeof text);
        while (kept && sent < (long)sizeof text) {
            struct pollfd p = {down[1], POLLOUT, 0};
            CHECK(poll(&p, 1, -1) == 1);
            ssize_t more = write(down[1], text + sent, sizeof text - sent);
            CHECK(more > 0);
            sent += more;
        }
        _exit(sent < 0);
    }
    close(down[1]);
    while ((n = read(down[0], text, sizeof text)) > 0)
        got += n;
    wait(NULL);
    CHECK(got == sizeof text);
}

static void again(void)
{
    char path[32], c;
    CHECK(pipe(down) == 0);
    snprintf(path, sizeof path, "/dev/fd/%d", down[0]);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && write(down[1], "q", 1) == 1);
    close(down[0]);
    CHECK(read(fd, &c, 1) == 1 && c == 'q');
    close(down[1]);
    CHECK(read(fd, &c, 1) == 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "capacity")) request(200000, 0);
    else if (!strcmp(how, "small")) request(1000, 0);
    else if (!strcmp(how, "both")) request(200000, 1);
    else if (!strcmp(how, "open")) end_of_file(0);
    else if (!strcmp(how, "closed")) end_of_file(1);
    else if (!strcmp(how, "broken")) broken(1);
    else if (!strcmp(how, "sigpipe")) broken(0);
    else if (!strcmp(how, "atomic")) records(0);
    else if (!strcmp(how, "torn")) records(2);
    else if (!strcmp(how, "nonblock")) fill(4096, 16);
    else if (!strcmp(how, "merge")) fill(3000, 16);
    else if (!strcmp(how, "select")) select_two();
    else if (!strcmp(how, "lost")) lost(0);
    else if (!strcmp(how, "kept")) lost(1);
    else if (!strcmp(how, "again")) again();
    else return 2;
    return 0;
}
