/* Two FIFOs between two processes: each end of a FIFO waits in open until the other end is opened too.  Buggy: the
   processes open them in crossing order.  Fixed: in the same order.  In both variants a reader that does not block looks
   first: a FIFO that nobody has had open for writing is not at its end. */
#include "t.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

static char request[64], answer[64];
static int fixed;

static int opened(const char *path, int flags)
{
    int fd = open(path, flags);
    if (fd < 0)
        abort();
    return fd;
}

static void client(void)
{
    int in, out;
    char c;

    if (fixed) {
        out = opened(request, O_WRONLY);
        in = opened(answer, O_RDONLY);
    } else {
        in = opened(answer, O_RDONLY);
        out = opened(request, O_WRONLY);
    }
    if (write(out, "?", 1) != 1 || read(in, &c, 1) != 1 || c != '!' || read(in, &c, 1) != 0)
        abort();
}

int main(int argc, char **argv)
{
    struct pollfd p = { .events = POLLIN };
    struct stat st;
    pid_t child;
    int in, out;
    char c;

    fixed = arg_is(argc, argv, "fixed");
    snprintf(request, sizeof request, "/tmp/fifo_open.%d.request", (int)getpid());
    snprintf(answer, sizeof answer, "/tmp/fifo_open.%d.answer", (int)getpid());
    unlink(request);
    unlink(answer);
    MUST(mkfifo(request, 0600));
    MUST(mkfifo(answer, 0600));
    errno = 0;
    assert(open(request, O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
    p.fd = opened(request, O_RDONLY | O_NONBLOCK);
    assert(poll(&p, 1, 0) == 0);
    assert(read(p.fd, &c, 1) == 0);
    out = opened(request, O_WRONLY | O_NONBLOCK);
    MUST(fstat(out, &st));
    assert(S_ISFIFO(st.st_mode));
    errno = 0;
    assert(read(p.fd, &c, 1) == -1 && errno == EAGAIN);
    close(out);
    assert(poll(&p, 1, 0) == 1 && p.revents == POLLHUP);
    close(p.fd);
    child = fork_run(client);
    in = opened(request, O_RDONLY);
    out = opened(answer, O_WRONLY);
    assert(read(in, &c, 1) == 1 && c == '?');
    assert(write(out, "!", 1) == 1);
    close(out);
    assert(reap(child) == 0);
    unlink(request);
    unlink(answer);
    return 0;
}
