/* State that decides what the calls of others do, which neither set it nor ask for it. Arguments: what it is, and "before" or "after": that the
 * call comes first, or second. "fixed": it comes after the join. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

static int fd, ends[2];
static char path[] = "/tmp/vsrun-decides-XXXXXX";

static void limit(int which, rlim_t value)
{
    struct rlimit now;
    MUST(getrlimit(which, &now));
    now.rlim_cur = value;
    MUST(setrlimit(which, &now));
}

/* Each sets something, and tells by a call of another kind whether it is set. */
static void fewer_descriptors(void) { limit(RLIMIT_NOFILE, 3); }
static int has_too_many(void) { return dup(1) < 0; }
static void smaller_files(void) { limit(RLIMIT_FSIZE, 2); }
static int writes_less(void) { return write(fd, "text", 4) == 2; }
static void appends(void) { MUST(fcntl(fd, F_SETFL, O_APPEND)); }
static int has_appended(void)
{
    struct stat status;
    MUST(write(fd, "x", 1) != 1);
    MUST(fstat(fd, &status));
    return status.st_size == 9;
}
static void waits_less(void)
{
    struct timeval time = {0, 1000};
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
}
static int gives_up(void)
{
    char byte;
    return read(ends[0], &byte, 1) < 0;
}
/* What a file holds that has no name. */
static void fills(void) { MUST(pwrite(fd, "x", 1, 0) != 1); }
static int is_filled(void)
{
    char byte;
    return pread(fd, &byte, 1, 0) == 1;
}

static const struct {
    const char *name;
    void (*set)(void);
    int (*is)(void);
} all[] = {
    {"descriptors", fewer_descriptors, has_too_many}, {"size", smaller_files, writes_less}, {"append", appends, has_appended},
    {"timeout", waits_less, gives_up},                {"memfd", fills, is_filled},
};
static int which;

static void *sets(void *arg)
{
    all[which].set();
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t;
    assert(argc == 3);
    while (strcmp(all[which].name, argv[1]) != 0)
        which++;
    signal(SIGXFSZ, SIG_IGN);
    if (!strcmp(argv[1], "memfd")) {
        fd = memfd_create("shared", 0);
    } else {
        fd = mkstemp(path);
        unlink(path);
    }
    MUST(fd < 0);
    if (!strcmp(argv[1], "append")) {
        MUST(write(fd, "12345678", 8) != 8);
        MUST(lseek(fd, 0, SEEK_SET) != 0);
    }
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    MUST(pthread_create(&t, NULL, sets, NULL));
    if (!strcmp(argv[2], "fixed")) {
        MUST(pthread_join(t, NULL));
        assert(all[which].is());
        return 0;
    }
    int is = all[which].is();
    assert(is == !strcmp(argv[2], "after"));
    MUST(pthread_join(t, NULL));
    return 0;
}
