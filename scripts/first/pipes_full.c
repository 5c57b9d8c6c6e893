/* A parent and a child that write to each other before they read; one byte too many fits only if the other reads in between. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int to[2], from[2];

static void send(int fd, int n)
{
    static char block[4096];
    for (int i = 0; i < n; i++)
        if (write(fd, block, sizeof block) < 0)
            _exit(1);
}

static void take(int fd, int n)
{
    static char block[4096];
    for (int got = 0; got < n * 4096;) {
        ssize_t r = read(fd, block, sizeof block);
        if (r <= 0)
            _exit(1);
        got += (int)r;
    }
}

int main(void)
{
    if (pipe(to) || pipe(from))
        return 1;
    fcntl(to[1], F_SETPIPE_SZ, 4096);
    fcntl(from[1], F_SETPIPE_SZ, 4096);
    pid_t child = fork();
    if (child == 0) {
        take(to[0], 1);
        send(from[1], 2);
        take(to[0], 1);
        _exit(0);
    }
    send(to[1], 2);
    take(from[0], 2);
    send(to[1], 0);
    waitpid(child, NULL, 0);
}
