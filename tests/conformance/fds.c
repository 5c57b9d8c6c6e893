// Descriptors that are none, and of the wrong kind.
#include "check.h"
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/vfs.h>

static char buffer[4096];
static struct epoll_event event;
static struct itimerspec setting;
static struct iovec iov = {buffer, 8};
static struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

// Every call that takes a descriptor, with that one.
static void all(const char *what, int fd) {
#define ON(name, call) do { errno = 0; long r = (long)(call); int e = errno; \
        if (r == -1) say("%s %s: -1 %s", name, what, strerrorname_np(e)); \
        else say("%s %s: %ld", name, what, r); } while (0)
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    strcpy(local.sun_path, "/nonexistent/x");
    socklen_t len = sizeof local;
    struct stat st;
    struct statfs fs;
    int value = 0;
    ON("fstat", fstat(fd, &st) == -1 ? -1 : 0);
    ON("lseek", lseek(fd, 0, SEEK_CUR));
    ON("lseek odd", lseek(fd, 0, 99));
    ON("pread", pread(fd, buffer, 0, 0));
    ON("pwrite", pwrite(fd, buffer, 0, 0));
    ON("preadv", preadv(fd, &iov, 0, 0));
    ON("pwritev", pwritev(fd, &iov, 0, 0));
    ON("ftruncate", ftruncate(fd, 0));
    ON("fsync", fsync(fd));
    ON("fdatasync", fdatasync(fd));
    ON("fchdir", fchdir(fd));
    ON("getdents64", syscall(SYS_getdents64, fd, buffer, sizeof buffer) > 0 ? 0 : -1);
    ON("fallocate", fallocate(fd, 0, 0, 10));
    ON("posix_fadvise", syscall(SYS_fadvise64, fd, 0, 0, 0));
    ON("readahead", readahead(fd, 0, 10));
    ON("sync_file_range", sync_file_range(fd, 0, 10, 0));
    ON("flock odd", flock(fd, 77));
    ON("fcntl F_GETFD", fcntl(fd, F_GETFD));
    ON("fcntl F_GETPIPE_SZ", fcntl(fd, F_GETPIPE_SZ));
    ON("fcntl F_SETPIPE_SZ", fcntl(fd, F_SETPIPE_SZ, 4096));
    ON("fcntl F_GET_SEALS", fcntl(fd, F_GET_SEALS));
    ON("fcntl odd", fcntl(fd, 9999));
    ON("ioctl odd", ioctl(fd, 0x12345678, &value));
    ON("ioctl TCGETS", ioctl(fd, 0x5401, buffer));
    ON("ioctl TIOCGWINSZ", ioctl(fd, TIOCGWINSZ, buffer));
    ON("isatty", isatty(fd) ? 1 : -1);
    ON("mmap", mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
    ON("dup2 to itself", dup2(fd, fd) == -1 ? -1 : 0);
    ON("dup3 to itself", dup3(fd, fd, 0) == -1 ? -1 : 0);
    ON("epoll_wait", epoll_wait(fd, &event, 1, 0));
    ON("epoll_wait of none", epoll_wait(fd, &event, 0, 0));
    ON("epoll_ctl", epoll_ctl(fd, EPOLL_CTL_ADD, 0, &event) == -1 && errno == EPERM ? -1 : -1);
    ON("timerfd_settime", timerfd_settime(fd, 0, &setting, 0));
    ON("timerfd_gettime", timerfd_gettime(fd, &setting));
    ON("signalfd", ({ sigset_t none; sigemptyset(&none); signalfd(fd, &none, 0) == -1 ? -1 : 0; }));
    ON("mq_getattr", ({ struct mq_attr a; mq_getattr(fd, &a); }));
    ON("mq_send", syscall(SYS_mq_timedsend, fd, buffer, 1, 0, 0));
    ON("mq_receive", syscall(SYS_mq_timedreceive, fd, buffer, sizeof buffer, 0, 0));
    ON("mq_notify", mq_notify(fd, 0));
    ON("bind", bind(fd, (void *)&local, sizeof local));
    ON("connect", connect(fd, (void *)&local, sizeof local));
    ON("listen", listen(fd, 1));
    ON("accept", accept(fd, 0, 0));
    ON("accept4 odd", accept4(fd, 0, 0, 0x10));
    ON("shutdown odd", shutdown(fd, 77));
    ON("send", send(fd, buffer, 0, MSG_NOSIGNAL | MSG_DONTWAIT));
    ON("recv", recv(fd, buffer, 0, MSG_DONTWAIT));
    ON("sendto", sendto(fd, buffer, 0, MSG_NOSIGNAL | MSG_DONTWAIT, (void *)&local, sizeof local));
    ON("recvfrom", recvfrom(fd, buffer, 0, MSG_DONTWAIT, (void *)&local, &len));
    ON("sendmsg", sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
    ON("recvmsg", recvmsg(fd, &message, MSG_DONTWAIT));
    ON("getsockname", getsockname(fd, (void *)&local, (len = sizeof local, &len)));
    ON("getpeername", getpeername(fd, (void *)&local, (len = sizeof local, &len)));
    ON("getsockopt", getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, (len = sizeof value, &len)));
    ON("setsockopt", setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
    ON("splice to", splice(fd, 0, 1, 0, 0, 0));
    ON("tee", tee(fd, fd, 1, SPLICE_F_NONBLOCK));
    ON("vmsplice", vmsplice(fd, &iov, 0, 0));
    int null = open("/dev/null", O_WRONLY);
    ON("sendfile", sendfile(null, fd, 0, 10));
    close(null);
    ON("copy_file_range", syscall(SYS_copy_file_range, fd, 0, fd, 0, 0, 0));
    ON("fgetxattr", syscall(SYS_fgetxattr, fd, "user.x", buffer, 10));
    ON("fstatfs", fstatfs(fd, &fs) == -1 ? -1 : 0);
    ON("futimens", futimens(fd, 0) == -1 ? -1 : 0);
    ON("openat", openat(fd, "x", O_RDONLY));
    ON("fstatat", fstatat(fd, "x", &st, 0));
    ON("readv of none", readv(fd, &iov, 0));
    ON("writev of none", writev(fd, &iov, 0));
    ON("readv of too many", readv(fd, &iov, 1025));
    ON("writev of minus one", writev(fd, &iov, -1));
    ON("preadv2 odd", syscall(SYS_preadv2, fd, &iov, 1, -1L, -1L, 0x4000));
}

static void none(void) {
    all("of -1", -1);
    all("of 77", 77);
    all("of a million", 1000000);
    CHECK(close(-1));
    CHECK(close(77));
    CHECK(read(77, buffer, 1));
    CHECK(write(77, buffer, 1));
    CHECK(dup(77));
    CHECK(dup2(77, 78));
    CHECK(dup2(0, -1));
    CHECK(dup2(0, 1 << 30));
    CHECK(dup3(0, 78, 77));
    CHECK(fcntl(77, F_DUPFD, 0));
    CHECK(fcntl(0, F_DUPFD, -1));
    CHECK(fcntl(0, F_DUPFD, 1 << 30));
    CHECK(syscall(SYS_close_range, 5, 4, 0));
    CHECK(syscall(SYS_close_range, 100, 200, 99));
    CHECK(syscall(SYS_close_range, 100, 200, 0));
    struct pollfd p[2] = {{77, POLLIN, 0}, {-1, POLLIN, 55}};
    CHECK(poll(p, 2, 0));
    say("poll: %x %x", p[0].revents, p[1].revents);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(77, &set);
    struct timeval now = {0, 0};
    CHECK(select(78, &set, 0, 0, &now));
    int ep = epoll_create1(0);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, 77, &event));
    CHECK(epoll_ctl(77, EPOLL_CTL_ADD, ep, &event));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ep, &event));
    CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, 0, 0) == -1 ? -1 : 0);
    close(ep);
}

static void pipes(void) {
    int p[2];
    pipe2(p, O_NONBLOCK);
    all("of a pipe for reading", p[0]);
    all("of a pipe for writing", p[1]);
    CHECK(read(p[1], buffer, 1));
    CHECK(write(p[0], buffer, 1));
    CHECK(readv(p[1], &iov, 1));
    CHECK(writev(p[0], &iov, 1));
    CHECK(read(p[1], buffer, 0));
    CHECK(write(p[0], buffer, 0));
    CHECK(close(p[0]));
    CHECK(close(p[0]));
    close(p[1]);
    CHECK(pipe2(p, 1));
    CHECK(pipe2(p, O_APPEND));
}

static void events(void) {
    int e = eventfd(0, EFD_NONBLOCK);
    all("of an eventfd", e);
    CHECK(read(e, buffer, 7));
    CHECK(write(e, buffer, 7));
    memset(buffer, 255, 8);
    CHECK(write(e, buffer, 8));
    memset(buffer, 255, 8);
    buffer[0] = -2;
    CHECK(write(e, buffer, 8));
    memset(buffer, 0, 8);
    buffer[0] = 1;
    CHECK(write(e, buffer, 8));
    CHECK(read(e, buffer, 100));
    close(e);
    CHECK(eventfd(0, 2));
    CHECK(eventfd(0, 0x10000));
    int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    all("of a timerfd", t);
    CHECK(write(t, buffer, 8));
    close(t);
    sigset_t usr;
    sigemptyset(&usr);
    int s = signalfd(-1, &usr, SFD_NONBLOCK);
    all("of a signalfd", s);
    CHECK(read(s, buffer, 127));
    CHECK(write(s, buffer, 128));
    close(s);
    CHECK(signalfd(-2, &usr, 0));
    CHECK(signalfd(-1, &usr, 77));
    CHECK(syscall(SYS_signalfd4, -1, &usr, 4, 0));
    int ep = epoll_create1(0);
    all("of an epoll instance", ep);
    CHECK(read(ep, buffer, 8));
    CHECK(write(ep, buffer, 8));
    close(ep);
    CHECK(epoll_create(0));
    CHECK(epoll_create(-1));
    CHECK(epoll_create1(1));
}

static void sockets(void) {
    int s[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s);
    all("of a stream socket", s[0]);
    close(s[0]);
    close(s[1]);
    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s);
    all("of a datagram socket", s[0]);
    close(s[0]);
    close(s[1]);
    int t = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    all("of a TCP socket", t);
    close(t);
    t = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    all("of a UDP socket", t);
    close(t);
    t = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    all("of a fresh local socket", t);
    close(t);
    t = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    bind(t, (void *)&local, 2);
    CHECK(listen(t, 1));
    all("of a listening socket", t);
    close(t);
}

static void others(void) {
    char name[] = "/tmp/vsrun-conformance-XXXXXX";
    int f = mkstemp(name);
    unlink(name);
    all("of a file", f);
    close(f);
    f = open("/", O_RDONLY);
    all("of a directory", f);
    CHECK(read(f, buffer, 1));
    CHECK(write(f, buffer, 1));
    close(f);
    struct mq_attr small = {.mq_maxmsg = 4, .mq_msgsize = 16};
    int q = mq_open("/vsrun-conformance-fds", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &small);
    mq_unlink("/vsrun-conformance-fds");
    CHECK(q >= 0);
    CHECK(write(q, buffer, 1));
    CHECK(bind(q, (void *)buffer, 16));
    CHECK(epoll_wait(q, &event, 1, 0));
    close(q);
}

static int there(int fd) {
    int n = 0;
    ioctl(fd, FIONREAD, &n);
    return n;
}

// What is in one pipe goes into another one.
static void tees(void) {
    int p[2], q[2], file = open("/", O_RDONLY);
    CHECK(pipe(p) | pipe(q));
    CHECK(tee(p[0], q[1], 5, SPLICE_F_NONBLOCK));
    CHECK(tee(p[0], p[1], 5, SPLICE_F_NONBLOCK));
    CHECK(tee(p[0], q[1], 5, 16));
    CHECK(tee(p[1], q[1], 0, 0));
    CHECK(tee(p[1], q[1], 5, 0));
    CHECK(tee(p[0], q[0], 5, 0));
    CHECK(tee(p[0], file, 5, 0));
    CHECK(tee(file, q[1], 5, 0));
    CHECK(tee(-1, q[1], 5, 0));
    CHECK(tee(p[0], -1, 5, 0));
    CHECK(tee(-1, q[1], 0, 0));
    CHECK(tee(-1, q[1], 5, 16));
    CHECK(write(p[1], "abcdef", 6));
    CHECK(tee(p[0], q[1], 4, 0));
    CHECK(tee(p[0], q[1], 40, 0));
    CHECK(tee(p[0], q[1], -1, 0));
    CHECK(write(q[1], "Z", 1));
    CHECK(write(p[1], "gh", 2));
    CHECK(there(p[0]));
    CHECK(there(q[0]));
    CHECK(read(q[0], buffer, 100));
    say("%.17s", buffer);
    for (int i = 0; i < 16; i++) CHECK(tee(p[0], q[1], 1, 0));
    CHECK(tee(p[0], q[1], 1, SPLICE_F_NONBLOCK));
    CHECK(read(q[0], buffer, 100));
    signal(SIGPIPE, SIG_IGN);
    close(q[0]);
    CHECK(tee(p[0], q[1], 4, 0));
    CHECK(read(p[0], buffer, 100));
    close(p[1]);
    CHECK(tee(p[0], q[1], 4, 0));
}

static void vmsplices(void) {
    static char bytes[70000] __attribute__((aligned(4096))), from[70000];
    int p[2], file = open("/", O_RDONLY);
    char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec v = {"abcdefgh", 8}, nothing = {bytes, 0}, bad = {(void *)8, 8}, two[2] = {{bytes, 8}, {(void *)8, 8}};
    struct iovec half = {m + 4000, 4000}, big = {bytes + 100, 69000}, far = {(void *)-1, 8}, negative = {bytes, -1};
    struct iovec parts[3] = {{bytes, 5000}, {bytes, 3}, {bytes + 4000, 200}};
    munmap(m + 4096, 4096);
    CHECK(pipe(p));
    CHECK(vmsplice(p[0], &v, 1, 16));
    CHECK(vmsplice(p[0], &v, 1025, 0));
    CHECK(vmsplice(p[1], &v, 1025, 0));
    CHECK(vmsplice(p[0], &v, 0, 0));
    CHECK(vmsplice(p[0], &nothing, 1, 0));
    CHECK(vmsplice(p[0], (void *)8, 1, 0));
    CHECK(vmsplice(file, &v, 1, 0));
    CHECK(vmsplice(-1, &v, 1, 0));
    CHECK(vmsplice(p[1], &far, 1, 0));
    CHECK(vmsplice(p[0], &far, 1, 0));
    CHECK(vmsplice(p[1], &negative, 1, 0));
    CHECK(vmsplice(p[1], &bad, 1, 0));
    CHECK(vmsplice(p[0], &v, 1, SPLICE_F_NONBLOCK));
    CHECK(vmsplice(p[1], &v, 1, 0));
    CHECK(write(p[1], "Z", 1));
    CHECK(vmsplice(p[0], &bad, 1, 0));
    CHECK(vmsplice(p[0], two, 2, 0));
    say("%.8s", bytes);
    CHECK(read(p[0], from, 100));
    CHECK(vmsplice(p[1], two, 2, 0));
    CHECK(read(p[0], from, 100));
    CHECK(vmsplice(p[1], &half, 1, 0));
    CHECK(vmsplice(p[1], parts, 3, 0));
    CHECK(there(p[0]));
    CHECK(read(p[0], from, sizeof from));
    CHECK(write(p[1], from, 500));
    CHECK(vmsplice(p[0], &half, 1, 0));
    CHECK(there(p[0]));
    CHECK(read(p[0], from, 1000));
    CHECK(vmsplice(p[1], &big, 1, 0));
    CHECK(vmsplice(p[1], &big, 1, SPLICE_F_NONBLOCK));
    CHECK(read(p[0], from, sizeof from));
    signal(SIGPIPE, SIG_IGN);
    close(p[0]);
    CHECK(vmsplice(p[1], &v, 1, 0));
    CHECK(vmsplice(p[1], &bad, 1, 0));
}

// Locks of what is no file.
static void locks(void) {
    int p[2];
    CHECK(pipe(p));
    CHECK(flock(p[0], LOCK_EX | LOCK_NB));
}

static void record_locks(void) {
    int p[2];
    CHECK(pipe(p));
    struct flock lock = {.l_type = F_WRLCK};
    CHECK(fcntl(p[1], F_SETLK, &lock));
}

static const struct group groups[] = {
    {"none", none}, {"pipes", pipes}, {"events", events}, {"sockets", sockets}, {"others", others},
    {"tees", tees}, {"vmsplices", vmsplices},
    {"locks", locks}, {"record_locks", record_locks}, {0, 0},
};

int main(int argc, char **argv) {
    // What the runner's own descriptors are is its business.
    close(0);
    open("/dev/null", O_RDONLY);
    return run_groups(groups, argc, argv);
}
