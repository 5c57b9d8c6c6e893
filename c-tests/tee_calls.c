/* tee and vmsplice: what there is goes into both pipes, in buffers of its own; what tee has waited for may be gone again. */
#include "t.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

static int p[2], q[2];
static volatile long got = -2;

static int in(int fd)
{
    int n = 0;
    MUST(ioctl(fd, FIONREAD, &n));
    return n;
}

static void tees(void)
{
    char bytes[70000];
    assert(tee(p[0], q[1], 5, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    assert(tee(p[0], p[1], 5, 0) == -1 && errno == EINVAL);
    assert(tee(p[0], q[1], 5, 16) == -1 && errno == EINVAL);
    assert(tee(p[1], q[1], 5, 0) == -1 && errno == EBADF);
    assert(tee(p[0], q[0], 5, 0) == -1 && errno == EBADF);
    assert(tee(-1, q[1], 5, 0) == -1 && errno == EBADF);
    assert(tee(-1, q[1], 0, 0) == 0);
    assert(write(p[1], "abcdef", 6) == 6);
    assert(tee(p[0], q[1], 4, 0) == 4);
    assert(tee(p[0], q[1], 40, 0) == 6);
    /* Nothing is added to what is in both, and what is added in the one is not in the other. */
    assert(write(q[1], "Z", 1) == 1);
    assert(write(p[1], "gh", 2) == 2);
    assert(in(p[0]) == 8 && in(q[0]) == 11);
    assert(read(q[0], bytes, 100) == 11 && memcmp(bytes, "abcdabcdefZ", 11) == 0);
    for (int i = 0; i < 16; i++) assert(tee(p[0], q[1], 1, 0) == 1);
    MUST(fcntl(p[0], F_SETFL, O_NONBLOCK));
    assert(tee(p[0], q[1], 1, 0) == -1 && errno == EAGAIN);
    MUST(fcntl(p[0], F_SETFL, 0));
    assert(read(q[0], bytes, 100) == 16 && read(p[0], bytes, 100) == 8);
    /* Of many buffers as many as there is room for, over the end of the ring. */
    memset(bytes, 'x', sizeof bytes);
    assert(write(p[1], bytes, 50000) == 50000 && write(q[1], bytes, 20000) == 20000);
    bytes[0] = 'y';
    assert(tee(p[0], q[1], 60000, 0) == 11 * 4096);
    assert(in(q[0]) == 20000 + 11 * 4096);
    signal(SIGPIPE, SIG_IGN);
    MUST(close(q[0]));
    assert(tee(p[0], q[1], 4, 0) == -1 && errno == EPIPE);
    assert(read(p[0], bytes, sizeof bytes) == 50000);
    MUST(close(p[1]));
    assert(tee(p[0], q[1], 4, 0) == -1 && errno == EPIPE);
}

static void vmsplices(void)
{
    static char bytes[70000] __attribute__((aligned(4096))), from[70000];
    char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec v = {"abcdefgh", 8}, none = {bytes, 0}, bad = {(void *)8, 8}, two[2] = {{bytes, 8}, {(void *)8, 8}};
    struct iovec half = {m + 4000, 4000}, big = {bytes + 100, 69000};
    assert(m != MAP_FAILED);
    assert(vmsplice(p[0], &v, 1, 16) == -1 && errno == EINVAL);
    assert(vmsplice(p[0], &v, 1025, 0) == -1 && errno == EINVAL);
    assert(vmsplice(p[0], &none, 1, 0) == 0);
    assert(vmsplice(p[1], &bad, 1, 0) == -1 && errno == EFAULT);
    assert(vmsplice(p[1], &v, 1, 0) == 8 && in(p[0]) == 8);
    assert(vmsplice(p[0], &bad, 1, 0) == -1 && errno == EFAULT);
    assert(vmsplice(p[0], two, 2, 0) == 8 && memcmp(bytes, "abcdefgh", 8) == 0);
    /* It waits by its flags alone. */
    assert(vmsplice(p[0], two, 2, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    assert(vmsplice(p[1], two, 2, 0) == 8 && read(p[0], from, 100) == 8);
    MUST(munmap(m + 4096, 4096));
    assert(vmsplice(p[1], &half, 1, 0) == 96 && read(p[0], from, 100) == 96);
    assert(write(p[1], from, 500) == 500);
    assert(vmsplice(p[0], &half, 1, 0) == -1 && errno == EFAULT && in(p[0]) == 500);
    assert(read(p[0], from, 1000) == 500);
    /* A buffer for each page: the first is shorter. */
    memset(bytes + 100, 'x', 69000);
    assert(vmsplice(p[1], &big, 1, 0) == 16 * 4096 - 100);
    assert(vmsplice(p[1], &big, 1, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    assert(read(p[0], from, sizeof from) == 16 * 4096 - 100 && memcmp(from, bytes + 100, 16 * 4096 - 100) == 0);
    signal(SIGPIPE, SIG_IGN);
    MUST(close(p[0]));
    assert(vmsplice(p[1], &v, 1, 0) == -1 && errno == EPIPE);
    assert(vmsplice(p[1], &bad, 1, 0) == -1 && errno == EPIPE);
}

static void *doubles(void *unused)
{
    got = tee(p[0], q[1], 10, 0);
    return unused;
}

static void *puts_pages(void *unused)
{
    struct iovec v = {"abcd", 4};
    got = vmsplice(p[1], &v, 1, 0);
    return unused;
}

int main(int argc, char **argv)
{
    char bytes[9];
    pthread_t t;
    MUST(pipe(p));
    MUST(pipe(q));
    if (arg_is(argc, argv, "vmsplice")) {
        vmsplices();
    } else if (arg_is(argc, argv, "gone")) {
        /* The reader may have taken all when tee comes to it again: then it gives 0 natively too. */
        assert(write(p[1], "abc", 3) == 3);
        t = go(doubles, NULL);
        assert(read(p[0], bytes, sizeof bytes) == 3);
        MUST(close(p[1]));
        join(t);
        assert(got == 3 || got == 0);
        assert(in(q[0]) == got);
    } else if (arg_is(argc, argv, "stuck")) {
        /* If the reader is first, nobody writes any more. */
        assert(write(p[1], "abc", 3) == 3);
        t = go(doubles, NULL);
        assert(read(p[0], bytes, sizeof bytes) == 3);
        join(t);
    } else if (arg_is(argc, argv, "full")) {
        /* It waits for room; what it has found by then may be gone. */
        for (int i = 0; i < 16; i++) assert(vmsplice(q[1], &(struct iovec){"x", 1}, 1, 0) == 1);
        assert(write(p[1], "abc", 3) == 3);
        t = go(doubles, NULL);
        assert(read(q[0], bytes, 1) == 1);
        assert(read(p[0], bytes, 2) == 2);
        join(t);
        assert(got == 3 || got == 1);
        if (argc > 2) assert(got == 3);
    } else if (arg_is(argc, argv, "pages")) {
        t = go(puts_pages, NULL);
        assert(write(p[1], "e", 1) == 1);
        join(t);
        assert(got == 4 && read(p[0], bytes, sizeof bytes) == 5);
        assert(memcmp(bytes, "abcde", 5) == 0 || memcmp(bytes, "eabcd", 5) == 0);
        if (argc > 2) assert(bytes[0] == 'a');
    } else {
        tees();
    }
    return 0;
}
