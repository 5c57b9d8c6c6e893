/* A pipe is given more buffers than it had, up to a MiB, or fewer, down to those in use; who waits for room is told (that is
   state of several threads, which is named). */
#include "t.h"
#include <fcntl.h>

static int p[2];
static char text[1 << 20];

static void *writes(void *unused)
{
    assert(write(p[1], text, 8192) == 8192);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;
    MUST(pipe(p));
    assert(fcntl(p[1], F_SETPIPE_SZ, 100000) == 131072);
    assert(fcntl(p[0], F_GETPIPE_SZ) == 131072);
    assert(write(p[1], text, 131072) == 131072);
    MUST(fcntl(p[1], F_SETFL, O_NONBLOCK));
    assert(write(p[1], text, 1) == -1 && errno == EAGAIN);
    assert(fcntl(p[1], F_SETPIPE_SZ, 65536) == -1 && errno == EBUSY);
    assert(read(p[0], text, sizeof text) == 131072);
    assert(fcntl(p[1], F_SETPIPE_SZ, 1 << 20) == 1 << 20);
    for (int i = 0; i < 256; i++) {
        text[4095] = (char)i;
        assert(write(p[1], text, 4096) == 4096);
    }
    assert(write(p[1], text, 1) == -1 && errno == EAGAIN);
    assert(read(p[0], text, sizeof text) == sizeof text);
    for (int i = 0; i < 256; i++) assert(text[4096 * i + 4095] == (char)i);
    assert(write(p[1], text, sizeof text) == sizeof text);
    assert(read(p[0], text, sizeof text) == sizeof text);
    MUST(fcntl(p[1], F_SETFL, 0));
    assert(fcntl(p[1], F_SETPIPE_SZ, 0) == 4096);
    if (!arg_is(argc, argv, "waits")) return 0;
    t = go(writes, NULL);
    assert(fcntl(p[1], F_SETPIPE_SZ, 8192) == 8192);
    join(t);
    assert(read(p[0], text, sizeof text) == 8192);
    return 0;
}
