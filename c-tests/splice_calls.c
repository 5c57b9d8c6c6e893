/* splice and sendfile with pipes: SPLICE_F_NONBLOCK, a pipe into itself, pages of files that get buffers of their own. */
#include "t.h"
#include <fcntl.h>
#include <sys/sendfile.h>

static int p[2], q[2];
static long moved;

static void *moves(void *unused)
{
    assert(splice(p[0], NULL, q[1], NULL, 10, 0) > 0);
    moved = splice(p[0], NULL, q[1], NULL, 10, SPLICE_F_NONBLOCK);
    assert(moved > 0 || (moved == -1 && errno == EAGAIN));
    return unused;
}

static void calls(void)
{
    char bytes[100], path[] = "/tmp/splice_calls.XXXXXX";
    int file = mkstemp(path);
    off_t at = 0;
    assert(file >= 0);
    MUST(unlink(path));
    assert(splice(p[0], NULL, q[1], NULL, 10, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    assert(splice(p[0], NULL, p[1], NULL, 10, 0) == -1 && errno == EINVAL);
    assert(splice(p[0], NULL, q[1], NULL, 10, 16) == -1 && errno == EINVAL);
    assert(splice(p[1], NULL, q[1], NULL, 10, 0) == -1 && errno == EBADF);
    assert(splice(p[0], NULL, q[0], NULL, 10, 0) == -1 && errno == EBADF);
    assert(write(file, path, 20) == 20);
    for (int i = 0; i < 16; i++, at = 0) assert(sendfile(p[1], file, &at, 5) == 5);
    MUST(fcntl(p[1], F_SETFL, O_NONBLOCK));
    assert(write(p[1], "x", 1) == -1 && errno == EAGAIN);
    assert(sendfile(p[1], file, &at, 5) == -1 && errno == EAGAIN);
    assert(read(p[0], bytes, 5) == 5 && memcmp(bytes, path, 5) == 0);
    assert(write(p[1], "x", 1) == 1);
    assert(write(p[1], "x", 1) == 1);
    assert(read(p[0], bytes, sizeof bytes) == 77);
    MUST(fcntl(p[1], F_SETFL, 0));
    at = 0;
    assert(splice(file, &at, p[1], NULL, 20, SPLICE_F_NONBLOCK) == 20 && at == 20);
    assert(splice(p[0], NULL, q[1], NULL, 10, SPLICE_F_NONBLOCK) == 10);
    assert(read(q[0], bytes, sizeof bytes) == 10 && memcmp(bytes, path, 10) == 0);
}

int main(int argc, char **argv)
{
    char bytes[9];
    pthread_t t;
    MUST(pipe(p));
    MUST(pipe(q));
    if (!arg_is(argc, argv, "race") && !arg_is(argc, argv, "empty")) {
        calls();
        return 0;
    }
    t = go(moves, NULL);
    assert(write(p[1], "abc", 3) == 3);
    assert(write(p[1], "d", 1) == 1);
    assert(read(q[0], bytes, sizeof bytes) >= 3);
    join(t);
    if (arg_is(argc, argv, "empty")) assert(moved > 0);
    return 0;
}
