/*
 * What fcntl and flock answer, as Linux does: parts of files, who owns what, what close, dup, fork and exit do.
 */
#include "t.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>

static const char *name = "/dev/shm/file-locks";

static int act(int fd, int command, short type, long start, long len, struct flock *l)
{
    memset(l, 0, sizeof *l);
    l->l_type = type;
    l->l_start = start;
    l->l_len = len;
    errno = 0;
    return fcntl(fd, command, l);
}

static int set(int fd, short type, long start, long len)
{
    struct flock l;
    return act(fd, F_SETLK, type, start, len, &l);
}

static int opened(int how)
{
    int fd = open(name, how | O_CREAT, 0600);
    assert(fd >= 0);
    return fd;
}

/* What another process finds in the way of a lock for writing. */
static void sees(short type, long start, long len, long asked_start, long asked_len, pid_t owner)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct flock l;
        int fd = opened(O_RDWR);
        MUST(act(fd, F_GETLK, F_WRLCK, asked_start, asked_len, &l));
        assert(l.l_type == type);
        if (type != F_UNLCK)
            assert(l.l_start == start && l.l_len == len && l.l_pid == owner && l.l_whence == SEEK_SET);
        assert(set(fd, F_WRLCK, asked_start, asked_len) == (type == F_UNLCK ? 0 : -1));
        assert(type == F_UNLCK || errno == EAGAIN);
        _exit(0);
    }
    assert(reap(pid) == 0);
}

static void errors(int fd)
{
    int reader = opened(O_RDONLY), writer = opened(O_WRONLY);
    assert(set(reader, F_WRLCK, 0, 1) == -1 && errno == EBADF);
    assert(set(writer, F_RDLCK, 0, 1) == -1 && errno == EBADF);
    assert(set(fd, F_RDLCK, -1, 1) == -1 && errno == EINVAL);
    assert(set(fd, F_RDLCK, 5, -6) == -1 && errno == EINVAL);
    assert(set(fd, 9, 5, 6) == -1 && errno == EINVAL);
    assert(set(fd, F_RDLCK, LONG_MAX, 2) == -1 && errno == EOVERFLOW);
    assert(set(-1, F_RDLCK, 0, 1) == -1 && errno == EBADF);
    assert(flock(fd, LOCK_NB) == -1 && errno == EINVAL);
    assert(flock(fd, LOCK_SH | LOCK_EX) == -1 && errno == EINVAL);
    assert(flock(-1, LOCK_SH) == -1 && errno == EBADF);
    close(reader);
    close(writer);
}

static void records(void)
{
    int fd = opened(O_RDWR);
    pid_t me = getpid();
    errors(fd);
    MUST(set(fd, F_WRLCK, 10, 10));
    MUST(set(fd, F_WRLCK, 20, 10));
    sees(F_WRLCK, 10, 20, 0, 0, me);
    MUST(set(fd, F_UNLCK, 15, 5));
    sees(F_UNLCK, 0, 0, 15, 5, me);
    sees(F_WRLCK, 10, 5, 0, 0, me);
    MUST(set(fd, F_RDLCK, 12, 10));
    sees(F_RDLCK, 12, 10, 12, 1, me);
    sees(F_WRLCK, 22, 8, 22, 0, me);
    MUST(set(fd, F_WRLCK, 100, 0));
    sees(F_WRLCK, 100, 0, 200, 1, me);
    /* A child has none of them; the close of any descriptor of the file gives all back. */
    close(opened(O_RDONLY));
    sees(F_UNLCK, 0, 0, 0, 0, me);
    MUST(set(fd, F_WRLCK, 0, 0));
    int other = opened(O_RDONLY);
    assert(dup2(other, 99) == 99);
    MUST(set(fd, F_WRLCK, 0, 0));
    assert(dup2(0, 99) == 99);
    sees(F_UNLCK, 0, 0, 0, 0, me);
    close(other);
    close(fd);
}

static void whole(void)
{
    int a = opened(O_RDWR), b = opened(O_RDONLY), c = dup(a);
    MUST(flock(a, LOCK_EX));
    MUST(flock(c, LOCK_EX | LOCK_NB));
    assert(flock(b, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    close(a);
    assert(flock(b, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    MUST(flock(c, LOCK_SH));
    MUST(flock(b, LOCK_SH | LOCK_NB));
    /* A change that fails has given up what was held. */
    assert(flock(b, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
    MUST(flock(c, LOCK_EX | LOCK_NB));
    pid_t pid = fork();
    if (pid == 0) {
        MUST(flock(c, LOCK_EX | LOCK_NB));
        _exit(0);
    }
    close(c);
    assert(reap(pid) == 0);
    /* The child's was the last descriptor. */
    MUST(flock(b, LOCK_EX | LOCK_NB));
    close(b);
}

static void descriptions(void)
{
    int a = opened(O_RDWR), b = opened(O_RDWR);
    struct flock l;
    MUST(act(a, F_OFD_SETLK, F_WRLCK, 0, 10, &l));
    assert(act(b, F_OFD_SETLK, F_RDLCK, 5, 1, &l) == -1 && errno == EAGAIN);
    MUST(act(b, F_OFD_GETLK, F_RDLCK, 5, 1, &l));
    assert(l.l_type == F_WRLCK && l.l_start == 0 && l.l_len == 10 && l.l_pid == -1);
    assert(set(a, F_WRLCK, 0, 1) == -1 && errno == EAGAIN);
    MUST(set(a, F_WRLCK, 10, 1));
    close(a);
    MUST(act(b, F_OFD_SETLK, F_WRLCK, 0, 0, &l));
    close(b);
}

int main(void)
{
    records();
    whole();
    descriptions();
    return 0;
}
