// Bad pointers: a call gives EFAULT, and has done as much as natively.
#include "check.h"
#include <arpa/inet.h>
#include <linux/futex.h>
#include <mqueue.h>

struct bad {
    const char *name;
    char *at;
};

// Below all mappings, in a hole, beyond what a program may have, at no address at all, not to be written.
static struct bad bads[6];
static char *edge;

static void make_bads(void) {
    char *hole = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hole + 4096, 4096);
    mprotect(hole + 2 * 4096, 4096, PROT_READ);
    edge = hole + 4096;
    bads[0] = (struct bad){"low", (char *)8};
    bads[1] = (struct bad){"hole", hole + 4096};
    bads[2] = (struct bad){"kernel", (char *)-4096L};
    bads[3] = (struct bad){"nowhere", (char *)0x8000000000000000UL};
    bads[4] = (struct bad){"readonly", hole + 2 * 4096};
}

static void line(const char *name, const struct bad *b, long result) {
    int error = errno;
    if (result == -1)
        say("%s %s: -1 %s", name, b->name, strerrorname_np(error));
    else
        say("%s %s: %ld", name, b->name, result);
}

// With each pointer that cannot be read; with each that cannot be written.
#define READS(name, call)                                                    \
    for (int i = 0; i < 4; i++) {                                            \
        char *bad = bads[i].at;                                              \
        errno = 0;                                                           \
        line(name, &bads[i], (long)(call));                                  \
    }
#define WRITES(name, call)                                                   \
    for (int i = 0; i < 5; i++) {                                            \
        char *bad = bads[i].at;                                              \
        errno = 0;                                                           \
        line(name, &bads[i], (long)(call));                                  \
    }

static char buffer[16384];

static void nonblocking(const int fds[2]) {
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
}

static void pipes(void) {
    WRITES("pipe", syscall(SYS_pipe, bad));
    WRITES("pipe2", syscall(SYS_pipe2, bad, O_CLOEXEC));
    int p[2];
    CHECK(pipe(p));
    nonblocking(p);
    READS("write", write(p[1], bad, 4));
    WRITES("read of nothing", read(p[0], bad, 4));
    CHECK(write(p[1], "0123456789", 10));
    WRITES("read", read(p[0], bad, 4));
    CHECK(read(p[0], edge - 3, 4));
    CHECK(write(p[1], edge - 3, 4));
    CHECK(write(p[1], edge - 1000, 5000));
    CHECK(read(p[0], buffer, 10000));
    CHECK(write(p[1], edge - 4096, 8192));
    CHECK(read(p[0], buffer, 10000));
    WRITES("read of no bytes", read(p[0], bad, 0));
    READS("write of no bytes", write(p[1], bad, 0));
    READS("readv", readv(p[0], (void *)bad, 2));
    READS("writev", writev(p[1], (void *)bad, 2));
    READS("preadv2", syscall(SYS_preadv2, p[0], bad, 1, -1L, -1L, 0));
    for (int i = 0; i < 4; i++) {
        struct iovec two[2] = {{buffer, 3}, {bads[i].at, 3}};
        line("writev of a good and a bad piece", &bads[i], writev(p[1], two, 2));
        line("what came", &bads[i], read(p[0], buffer, 100));
        struct iovec swapped[2] = {{bads[i].at, 3}, {buffer, 3}};
        line("writev of a bad and a good piece", &bads[i], writev(p[1], swapped, 2));
        line("what came", &bads[i], read(p[0], buffer, 100));
    }
    int flags = 1;
    (void)flags;
    WRITES("FIONREAD", ioctl(p[0], FIONREAD, bad));
    READS("FIONBIO", ioctl(p[0], FIONBIO, bad));
    WRITES("fstat", syscall(SYS_fstat, p[0], bad));
    WRITES("newfstatat", syscall(SYS_newfstatat, p[0], "", bad, AT_EMPTY_PATH));
    READS("newfstatat of", syscall(SYS_newfstatat, p[0], bad, buffer, AT_EMPTY_PATH));
    WRITES("statx", syscall(SYS_statx, p[0], "", AT_EMPTY_PATH, 0x7ff, bad));
    close(p[0]);
    signal(SIGPIPE, SIG_IGN);
    READS("write without readers", write(p[1], bad, 4));
    close(p[1]);
    CHECK(dup(0));
    close(3);
    READS("sendfile", sendfile(1, 0, (off_t *)bad, 10));
    CHECK(pipe(p));
    int file = open("/proc/self/exe", O_RDONLY);
    READS("sendfile to a pipe", sendfile(p[1], file, (off_t *)bad, 10));
    READS("splice", splice(file, (off64_t *)bad, p[1], 0, 10, 0));
    NAMED("what is in the pipe", (fcntl(p[0], F_SETFL, O_NONBLOCK), read(p[0], buffer, 100)));
    close(file);
    close(p[0]);
    close(p[1]);
}

static void streams(int domain, int type, const char *what) {
    int s[2];
    if (socketpair(domain, type, 0, s)) return;
    nonblocking(s);
    say("%s", what);
    READS("send", send(s[0], bad, 4, 0));
    READS("write", write(s[0], bad, 4));
    WRITES("recv of nothing", recv(s[1], bad, 4, 0));
    CHECK(send(s[0], "0123456789", 10, 0));
    WRITES("recv MSG_PEEK", recv(s[1], bad, 4, MSG_PEEK));
    for (int i = 0; i < 5; i++) {
        line("recv", &bads[i], recv(s[1], bads[i].at, 4, 0));
        line("what is left", &bads[i], recv(s[1], buffer, 100, MSG_PEEK));
        if (type != SOCK_STREAM) send(s[0], "0123456789", 10, 0);
    }
    CHECK(recv(s[1], buffer, 100, 0));
    CHECK(send(s[0], edge - 3, 4, 0));
    CHECK(recv(s[1], buffer, 100, 0));
    send(s[0], "01", 2, 0);
    send(s[0], "234", 3, 0);
    CHECK(recv(s[1], edge - 3, 5, 0));
    CHECK(recv(s[1], buffer, 100, 0));
    CHECK(recv(s[1], buffer, 100, 0));
    READS("sendmsg", sendmsg(s[0], (void *)bad, 0));
    READS("recvmsg", recvmsg(s[1], (void *)bad, 0));
    READS("sendmmsg", sendmmsg(s[0], (void *)bad, 2, 0));
    READS("recvmmsg", recvmmsg(s[1], (void *)bad, 2, MSG_DONTWAIT, 0));
    READS("sendto an address", sendto(s[0], "x", 1, 0, (void *)bad, 16));
    CHECK(recv(s[1], buffer, 100, 0));
    for (int i = 0; i < 4; i++) {
        struct iovec one = {buffer, 3};
        struct msghdr m = {.msg_iov = (void *)bads[i].at, .msg_iovlen = 1};
        line("sendmsg of a bad vector", &bads[i], sendmsg(s[0], &m, 0));
        line("recvmsg to a bad vector", &bads[i], recvmsg(s[1], &m, 0));
        m = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1, .msg_control = bads[i].at, .msg_controllen = 64};
        line("sendmsg of bad control", &bads[i], sendmsg(s[0], &m, 0));
        m = (struct msghdr){.msg_name = bads[i].at, .msg_namelen = 16, .msg_iov = &one, .msg_iovlen = 1};
        line("sendmsg to a bad name", &bads[i], sendmsg(s[0], &m, 0));
    }
    CHECK(recv(s[1], buffer, 100, 0));
    WRITES("recvfrom", (send(s[0], "x", 1, 0), recvfrom(s[1], buffer, 4, 0, (void *)buffer, (void *)bad)));
    CHECK(recv(s[1], buffer, 100, 0));
    WRITES("getsockname", getsockname(s[0], (void *)bad, &(socklen_t){16}));
    WRITES("getsockname with a bad length", getsockname(s[0], (void *)buffer, (void *)bad));
    WRITES("getpeername", getpeername(s[0], (void *)bad, &(socklen_t){16}));
    WRITES("getpeername with a bad length", getpeername(s[0], (void *)buffer, (void *)bad));
    WRITES("getsockopt", getsockopt(s[0], SOL_SOCKET, SO_TYPE, bad, &(socklen_t){4}));
    WRITES("getsockopt with a bad length", getsockopt(s[0], SOL_SOCKET, SO_TYPE, buffer, (void *)bad));
    READS("setsockopt", setsockopt(s[0], SOL_SOCKET, SO_KEEPALIVE, bad, 4));
    READS("setsockopt SO_LINGER", setsockopt(s[0], SOL_SOCKET, SO_LINGER, bad, 8));
    READS("setsockopt SO_RCVTIMEO", setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, bad, 16));
    READS("connect", connect(s[0], (void *)bad, 16));
    READS("bind", bind(s[0], (void *)bad, 16));
    WRITES("FIONREAD", ioctl(s[1], FIONREAD, bad));
    close(s[1]);
    READS("send to nobody", send(s[0], bad, 4, MSG_NOSIGNAL));
    close(s[0]);
}

static void local_streams(void) {
    streams(AF_UNIX, SOCK_STREAM, "stream");
}

static void local_datagrams(void) {
    streams(AF_UNIX, SOCK_DGRAM, "datagrams");
}

static void local_packets(void) {
    streams(AF_UNIX, SOCK_SEQPACKET, "packets");
}

static void rights(void) {
    int s[2], p[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    nonblocking(s);
    CHECK(pipe(p));
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(8)];
    } control = {.head = {CMSG_LEN(8), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), p, 8);
    // Two control messages, of which the second is beyond the edge of memory.
    char *at = edge - 24;
    memcpy(at, &control, 24);
    struct iovec one = {"x", 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = at, .msg_controllen = 48};
    CHECK(sendmsg(s[0], &m, 0));
    // Nobody has the pipe's end but this process.
    close(p[1]);
    CHECK(read(p[0], buffer, 1));
    close(p[0]);
    CHECK(pipe(p));
    memcpy(CMSG_DATA(&control.head), p, 8);
    m = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    CHECK(sendmsg(s[0], &m, 0));
    one = (struct iovec){buffer, 10};
    m = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1, .msg_control = (void *)8, .msg_controllen = 64};
    CHECK(recvmsg(s[1], &m, 0));
    say("truncated: %d", !!(m.msg_flags & MSG_CTRUNC));
    close(p[1]);
    CHECK(read(p[0], buffer, 1));
    close(p[0]);
    close(s[0]);
    close(s[1]);
    WRITES("socketpair", syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, bad));
    CHECK(dup(0));
    close(3);
}

static void tcp(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    READS("bind", bind(listener, (void *)bad, sizeof a));
    CHECK(bind(listener, (void *)&a, sizeof a));
    CHECK(listen(listener, 5));
    getsockname(listener, (void *)&a, &len);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    READS("connect", connect(client, (void *)bad, sizeof a));
    CHECK(connect(client, (void *)&a, sizeof a));
    int server = accept(listener, (void *)&a, &len);
    READS("send", send(client, bad, 10, 0));
    CHECK(send(client, "0123456789", 10, 0));
    WRITES("recv", recv(server, bad, 10, 0));
    CHECK(recv(server, edge - 3, 10, 0));
    CHECK(recv(server, buffer, 100, 0));
    READS("setsockopt TCP_NODELAY", setsockopt(client, IPPROTO_TCP, 1, bad, 4));
    WRITES("getsockopt TCP_NODELAY", getsockopt(client, IPPROTO_TCP, 1, bad, &(socklen_t){4}));
    WRITES("getsockopt TCP_INFO", getsockopt(client, IPPROTO_TCP, 11, bad, &(socklen_t){100}));
    int next = socket(AF_INET, SOCK_STREAM, 0);
    getsockname(listener, (void *)&a, &len);
    CHECK(connect(next, (void *)&a, sizeof a));
    CHECK(accept(listener, (void *)8, &len));
    // The connection is gone.
    CHECK(recv(next, buffer, 10, 0));
    close(next);
    CHECK(fcntl(listener, F_SETFL, O_NONBLOCK));
    CHECK(accept(listener, (void *)8, &len));
    CHECK(accept(listener, (void *)&a, (void *)8));
    close(server);
    close(client);
    close(listener);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    a.sin_port = 0;
    CHECK(bind(udp, (void *)&a, sizeof a));
    getsockname(udp, (void *)&a, &len);
    READS("sendto", sendto(udp, bad, 10, 0, (void *)&a, sizeof a));
    CHECK(fcntl(udp, F_SETFL, O_NONBLOCK));
    CHECK(recv(udp, buffer, 10, 0));
    WRITES("recv of a datagram", (sendto(udp, "x", 1, 0, (void *)&a, sizeof a), recv(udp, bad, 10, 0)));
    CHECK(recv(udp, buffer, 10, 0));
    close(udp);
}

static void events(void) {
    int e = eventfd(3, EFD_NONBLOCK);
    READS("eventfd write", write(e, bad, 8));
    CHECK(read(e, buffer, 8));
    WRITES("eventfd read of nothing", read(e, bad, 8));
    for (int i = 0; i < 5; i++) {
        uint64_t five = 5;
        line("eventfd write", &bads[i], write(e, &five, 8));
        line("eventfd read", &bads[i], read(e, bads[i].at, 8));
        line("what is left", &bads[i], read(e, buffer, 8));
    }
    int ep = epoll_create1(0);
    READS("epoll_ctl", epoll_ctl(ep, EPOLL_CTL_ADD, e, (void *)bad));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, e, &(struct epoll_event){EPOLLIN | EPOLLET, {.u64 = 7}}));
    WRITES("epoll_wait for nothing", epoll_wait(ep, (void *)bad, 4, 0));
    uint64_t two = 2;
    CHECK(write(e, &two, 8));
    WRITES("epoll_wait", epoll_wait(ep, (void *)bad, 4, 0));
    struct epoll_event got;
    CHECK(epoll_wait(ep, &got, 1, 0));
    CHECK(epoll_wait(ep, &got, 1, 0));
    READS("epoll_pwait", syscall(SYS_epoll_pwait, ep, &got, 1, 0, bad, 8));
    READS("epoll_pwait2", syscall(SYS_epoll_pwait2, ep, &got, 1, bad, 0, 8));
    close(ep);
    close(e);
    int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    READS("timerfd_settime", syscall(SYS_timerfd_settime, t, 0, bad, 0));
    struct itimerspec long_time = {{0, 0}, {1000, 0}}, now;
    for (int i = 0; i < 5; i++) {
        line("timerfd_settime, old", &bads[i], syscall(SYS_timerfd_settime, t, 0, &long_time, bads[i].at));
        timerfd_gettime(t, &now);
        say("set: %d", now.it_value.tv_sec > 0);
        timerfd_settime(t, 0, &(struct itimerspec){}, 0);
    }
    WRITES("timerfd_gettime", syscall(SYS_timerfd_gettime, t, bad));
    WRITES("timerfd read of nothing", read(t, bad, 8));
    close(t);
    READS("signalfd4", syscall(SYS_signalfd4, -1, bad, 8, 0));
    sigset_t usr;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr, 0);
    int s = signalfd(-1, &usr, SFD_NONBLOCK);
    WRITES("signalfd read of nothing", read(s, bad, 128));
    for (int i = 0; i < 5; i++) {
        raise(SIGUSR1);
        line("signalfd read", &bads[i], read(s, bads[i].at, 128));
        line("what is left", &bads[i], read(s, buffer, 128));
    }
    close(s);
    sigprocmask(SIG_UNBLOCK, &usr, 0);
}

static void polls(void) {
    int e = eventfd(1, 0);
    READS("poll", syscall(SYS_poll, bad, 1, 0));
    WRITES("poll of none", syscall(SYS_poll, bad, 0, 0));
    struct pollfd *there = (void *)(edge - 8);
    *there = (struct pollfd){e, POLLIN, 0};
    CHECK(poll(there, 2, 0));
    struct pollfd one = {e, POLLIN, 0};
    READS("ppoll, time", syscall(SYS_ppoll, &one, 1, bad, 0, 8));
    READS("ppoll, mask", syscall(SYS_ppoll, &one, 1, 0, bad, 8));
    READS("ppoll, both", syscall(SYS_ppoll, bad, 1, 0, 0, 8));
    READS("select", syscall(SYS_select, e + 1, bad, 0, 0, 0));
    READS("select, time", syscall(SYS_select, 0, 0, 0, 0, bad));
    READS("pselect, time", syscall(SYS_pselect6, 0, 0, 0, 0, bad, 0));
    READS("pselect, mask", syscall(SYS_pselect6, 0, 0, 0, 0, &(struct timespec){}, bad));
    long mask[2] = {8, 8};
    CHECK(syscall(SYS_pselect6, 0, 0, 0, 0, &(struct timespec){}, mask));
    // The mask is the one from before.
    sigset_t now;
    sigprocmask(0, 0, &now);
    say("SIGUSR1 blocked: %d", sigismember(&now, SIGUSR1));
    close(e);
}

static void futexes(void) {
    static uint32_t word = 5;
    READS("wait", syscall(SYS_futex, bad, FUTEX_WAIT, 1, 0, 0, 0));
    READS("private wait", syscall(SYS_futex, bad, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0));
    READS("wait, time", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, bad, 0, 0));
    READS("wake", syscall(SYS_futex, bad, FUTEX_WAKE, 1, 0, 0, 0));
    READS("private wake", syscall(SYS_futex, bad, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0));
    READS("wait bitset", syscall(SYS_futex, bad, FUTEX_WAIT_BITSET_PRIVATE, 1, 0, 0, 1));
    READS("requeue", syscall(SYS_futex, bad, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &word, 5));
    READS("requeue to", syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, bad, 5));
    READS("shared requeue to", syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE, 1, 1, bad, 5));
    WRITES("wake op", syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 1, 1, bad, 0));
    WRITES("lock pi", syscall(SYS_futex, bad, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0));
    WRITES("trylock pi", syscall(SYS_futex, bad, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0));
    WRITES("unlock pi", syscall(SYS_futex, bad, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0));
    READS("lock pi, time", syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, bad, 0, 0));
    say("word %u", word);
}

static void times(void) {
    WRITES("clock_gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, bad));
    WRITES("clock_getres", syscall(SYS_clock_getres, CLOCK_MONOTONIC, bad));
    WRITES("gettimeofday", syscall(SYS_gettimeofday, bad, 0));
    WRITES("gettimeofday, zone", syscall(SYS_gettimeofday, 0, bad));
    WRITES("time", syscall(SYS_time, bad));
    WRITES("times", syscall(SYS_times, bad) > 0 ? 0 : -1);
    READS("nanosleep", nanosleep((void *)bad, 0));
    READS("clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, bad, 0));
    WRITES("getitimer", syscall(SYS_getitimer, ITIMER_REAL, bad));
    READS("setitimer", syscall(SYS_setitimer, ITIMER_REAL, bad, 0));
    struct itimerval some = {{0, 0}, {1000, 0}}, left;
    for (int i = 0; i < 5; i++) {
        line("setitimer, old", &bads[i], syscall(SYS_setitimer, ITIMER_REAL, &some, bads[i].at));
        getitimer(ITIMER_REAL, &left);
        say("set: %d", left.it_value.tv_sec > 0);
        setitimer(ITIMER_REAL, &(struct itimerval){}, 0);
    }
    int timer;
    READS("timer_create", syscall(SYS_timer_create, CLOCK_MONOTONIC, bad, &timer));
    WRITES("timer_create, id", syscall(SYS_timer_create, CLOCK_MONOTONIC, 0, bad));
    CHECK(syscall(SYS_timer_create, CLOCK_MONOTONIC, 0, &timer));
    READS("timer_settime", syscall(SYS_timer_settime, timer, 0, bad, 0));
    WRITES("timer_gettime", syscall(SYS_timer_gettime, timer, bad));
    struct itimerspec long_time = {{0, 0}, {1000, 0}}, now;
    for (int i = 0; i < 5; i++) {
        line("timer_settime, old", &bads[i], syscall(SYS_timer_settime, timer, 0, &long_time, bads[i].at));
        syscall(SYS_timer_gettime, timer, &now);
        say("set: %d", now.it_value.tv_sec > 0);
        syscall(SYS_timer_settime, timer, 0, &(struct itimerspec){}, 0);
    }
    // A bad setting leaves the timer as it was.
    syscall(SYS_timer_settime, timer, 0, &long_time, 0);
    CHECK(syscall(SYS_timer_settime, timer, 0, (void *)8, 0));
    syscall(SYS_timer_gettime, timer, &now);
    say("still set: %d", now.it_value.tv_sec > 0);
    CHECK(syscall(SYS_timer_delete, timer));
    WRITES("getcpu", syscall(SYS_getcpu, bad, 0, 0));
    WRITES("getrandom", syscall(SYS_getrandom, bad, 8, 0));
    CHECK(syscall(SYS_getrandom, edge - 3, 8, 0));
}

static void nothing(int signal) {
    (void)signal;
}

static void signals(void) {
    READS("sigaction", syscall(SYS_rt_sigaction, SIGUSR1, bad, 0, 8));
    WRITES("sigaction, old", syscall(SYS_rt_sigaction, SIGUSR1, 0, bad, 8));
    struct {
        void (*handler)(int);
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } ignore = {SIG_IGN, 0, 0, 0}, now;
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, &ignore, (void *)8, 8));
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, 0, &now, 8));
    say("ignored: %d", now.handler == SIG_IGN);
    READS("sigprocmask", syscall(SYS_rt_sigprocmask, SIG_BLOCK, bad, 0, 8));
    unsigned long usr2 = 1UL << (SIGUSR2 - 1), mask = 0;
    for (int i = 0; i < 5; i++) {
        line("sigprocmask, old", &bads[i], syscall(SYS_rt_sigprocmask, SIG_BLOCK, &usr2, bads[i].at, 8));
        syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &usr2, &mask, 8);
        say("blocked: %d", mask == usr2);
    }
    WRITES("sigpending", syscall(SYS_rt_sigpending, bad, 8));
    READS("sigsuspend", syscall(SYS_rt_sigsuspend, bad, 8));
    READS("sigtimedwait", syscall(SYS_rt_sigtimedwait, bad, 0, 0, 8));
    READS("sigtimedwait, time", syscall(SYS_rt_sigtimedwait, &usr2, 0, bad, 8));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    for (int i = 0; i < 5; i++) {
        raise(SIGUSR2);
        line("sigtimedwait, info", &bads[i], syscall(SYS_rt_sigtimedwait, &usr2, bads[i].at, 0, 8));
        sigpending(&set);
        say("pending: %d", sigismember(&set, SIGUSR2));
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &set, 0);
    READS("sigqueueinfo", syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, bad));
    READS("tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, bad));
    READS("sigaltstack", syscall(SYS_sigaltstack, bad, 0));
    WRITES("sigaltstack, old", syscall(SYS_sigaltstack, 0, bad));
    signal(SIGUSR1, nothing);
}

static void ipc(void) {
    int set = semget(IPC_PRIVATE, 2, 0600);
    READS("semop", syscall(SYS_semop, set, bad, 1));
    READS("semop of no set", syscall(SYS_semop, 12345678, bad, 1));
    struct sembuf *two = (void *)(edge - 6);
    *two = (struct sembuf){0, 1, 0};
    CHECK(semop(set, two, 2));
    CHECK(semctl(set, 0, GETVAL));
    READS("semtimedop, time", syscall(SYS_semtimedop, set, two, 1, bad));
    CHECK(semctl(set, 0, GETVAL));
    READS("SETALL", semctl(set, 0, SETALL, bad));
    WRITES("GETALL", semctl(set, 0, GETALL, bad));
    WRITES("semctl IPC_STAT", semctl(set, 0, IPC_STAT, bad));
    READS("semctl IPC_SET", semctl(set, 0, IPC_SET, bad));
    CHECK(semctl(set, 0, IPC_RMID));
    int queue = msgget(IPC_PRIVATE, 0600);
    READS("msgsnd", msgsnd(queue, bad, 4, IPC_NOWAIT));
    READS("msgsnd to no queue", msgsnd(12345678, bad, 4, IPC_NOWAIT));
    long *message = (void *)(edge - 12);
    *message = 1;
    CHECK(msgsnd(queue, message, 5, IPC_NOWAIT));
    WRITES("msgrcv of nothing", msgrcv(queue, bad, 4, 0, IPC_NOWAIT));
    for (int i = 0; i < 5; i++) {
        line("msgsnd", &bads[i], msgsnd(queue, message, 4, IPC_NOWAIT));
        line("msgrcv", &bads[i], msgrcv(queue, bads[i].at, 4, 0, IPC_NOWAIT));
        struct msqid_ds d;
        msgctl(queue, IPC_STAT, &d);
        say("left: %d", (int)d.msg_qnum);
    }
    WRITES("msgctl IPC_STAT", msgctl(queue, IPC_STAT, (void *)bad));
    READS("msgctl IPC_SET", msgctl(queue, IPC_SET, (void *)bad));
    CHECK(msgctl(queue, IPC_RMID, 0));
    int segment = shmget(IPC_PRIVATE, 4096, 0600);
    WRITES("shmctl IPC_STAT", shmctl(segment, IPC_STAT, (void *)bad));
    READS("shmctl IPC_SET", shmctl(segment, IPC_SET, (void *)bad));
    CHECK(shmctl(segment, IPC_RMID, 0));
}

static void queues(void) {
    struct mq_attr small = {.mq_maxmsg = 4, .mq_msgsize = 16};
    mq_unlink("/vsrun-conformance");
    READS("mq_open", syscall(SYS_mq_open, bad, O_RDWR, 0, 0));
    READS("mq_open, attributes", syscall(SYS_mq_open, "vsrun-conformance", O_RDWR | O_CREAT, 0600, bad));
    int q = mq_open("/vsrun-conformance", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &small);
    CHECK(q >= 0);
    mq_unlink("/vsrun-conformance");
    READS("mq_unlink", syscall(SYS_mq_unlink, bad));
    READS("mq_timedsend", syscall(SYS_mq_timedsend, q, bad, 4, 0, 0));
    READS("mq_timedsend, time", syscall(SYS_mq_timedsend, q, "abc", 4, 0, bad));
    WRITES("mq_timedreceive of nothing", syscall(SYS_mq_timedreceive, q, bad, 16, 0, 0));
    for (int i = 0; i < 5; i++) {
        struct mq_attr a;
        line("mq_timedsend", &bads[i], syscall(SYS_mq_timedsend, q, "abc", 4, 3, 0));
        line("mq_timedreceive", &bads[i], syscall(SYS_mq_timedreceive, q, bads[i].at, 16, 0, 0));
        mq_getattr(q, &a);
        say("left: %ld", a.mq_curmsgs);
        line("mq_timedsend", &bads[i], syscall(SYS_mq_timedsend, q, "abc", 4, 3, 0));
        line("mq_timedreceive, priority", &bads[i], syscall(SYS_mq_timedreceive, q, buffer, 16, bads[i].at, 0));
        mq_getattr(q, &a);
        say("left: %ld", a.mq_curmsgs);
    }
    READS("mq_notify", syscall(SYS_mq_notify, q, bad));
    READS("mq_getsetattr", syscall(SYS_mq_getsetattr, q, bad, 0));
    WRITES("mq_getsetattr, old", syscall(SYS_mq_getsetattr, q, 0, bad));
    WRITES("read of its text", read(q, bad, 10));
    close(q);
}

static void processes(void) {
    for (int i = 0; i < 5; i++) {
        if (fork() == 0) _exit(3);
        line("wait4, status", &bads[i], syscall(SYS_wait4, -1, bads[i].at, 0, 0));
        line("once more", &bads[i], wait(0));
        if (fork() == 0) _exit(3);
        line("wait4, usage", &bads[i], syscall(SYS_wait4, -1, 0, 0, bads[i].at));
        line("once more", &bads[i], wait(0));
        if (fork() == 0) _exit(3);
        line("waitid", &bads[i], syscall(SYS_waitid, P_ALL, 0, bads[i].at, WEXITED, 0));
        line("once more", &bads[i], wait(0));
    }
    char *none[] = {0}, *some[] = {"true", 0};
    READS("execve", execve(bad, some, none));
    READS("execve, arguments", syscall(SYS_execve, "/bin/true", bad, none));
    READS("execve, environment", syscall(SYS_execve, "/bin/true", some, bad));
    for (int i = 0; i < 4; i++) {
        char *list[] = {"true", bads[i].at, 0};
        line("execve, an argument", &bads[i], syscall(SYS_execve, "/bin/true", list, none));
        line("execve, a variable", &bads[i], syscall(SYS_execve, "/bin/true", some, list));
    }
    CHECK(syscall(SYS_execve, "/nonexistent", (void *)8, (void *)8));
    READS("clone3", syscall(SYS_clone3, bad, 64));
    // Where the id of a child is wanted may be anywhere.
    for (int i = 0; i < 5; i++) {
        long child = syscall(SYS_clone, 0x100000 | 0x1000000 | SIGCHLD, 0, bads[i].at, bads[i].at, 0);
        if (child == 0) _exit(0);
        line("clone", &bads[i], child > 0);
        line("wait", &bads[i], wait(0) == child);
    }
    WRITES("PR_GET_PDEATHSIG", prctl(PR_GET_PDEATHSIG, bad));
    WRITES("PR_GET_TSC", prctl(PR_GET_TSC, bad));
    WRITES("PR_GET_NAME", prctl(PR_GET_NAME, bad));
    READS("PR_SET_NAME", prctl(PR_SET_NAME, bad));
    WRITES("PR_GET_CHILD_SUBREAPER", prctl(PR_GET_CHILD_SUBREAPER, bad));
    WRITES("sched_getaffinity", syscall(SYS_sched_getaffinity, 0, 128, bad) > 0 ? 0 : -1);
    READS("sched_setaffinity", syscall(SYS_sched_setaffinity, 0, 128, bad));
    WRITES("getrlimit", syscall(SYS_getrlimit, RLIMIT_NOFILE, bad));
    READS("setrlimit", syscall(SYS_setrlimit, RLIMIT_NOFILE, bad));
    WRITES("prlimit", syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, bad));
    WRITES("getrusage", syscall(SYS_getrusage, RUSAGE_SELF, bad));
    WRITES("uname", syscall(SYS_uname, bad));
    WRITES("sysinfo", syscall(SYS_sysinfo, bad));
    WRITES("getresuid", syscall(SYS_getresuid, bad, bad, bad));
    WRITES("sched_getparam", syscall(SYS_sched_getparam, 0, bad));
}

static void files(void) {
    READS("open", syscall(SYS_open, bad, O_RDONLY));
    READS("openat", syscall(SYS_openat, AT_FDCWD, bad, O_CREAT | O_WRONLY, 0600));
    READS("creat", syscall(SYS_creat, bad, 0600));
    READS("stat", syscall(SYS_stat, bad, buffer));
    WRITES("stat to", syscall(SYS_stat, "/", bad));
    READS("access", syscall(SYS_access, bad, 0));
    READS("unlink", syscall(SYS_unlink, bad));
    READS("mkdir", syscall(SYS_mkdir, bad, 0700));
    READS("rmdir", syscall(SYS_rmdir, bad));
    READS("rename", syscall(SYS_rename, bad, "x"));
    READS("rename to", syscall(SYS_rename, "/nonexistent", bad));
    READS("link", syscall(SYS_link, bad, "x"));
    READS("link to", syscall(SYS_link, "/bin/true", bad));
    READS("symlink", syscall(SYS_symlink, bad, "x"));
    READS("symlink to", syscall(SYS_symlink, "y", bad));
    READS("readlink", syscall(SYS_readlink, bad, buffer, 10));
    WRITES("readlink to", syscall(SYS_readlink, "/proc/self/exe", bad, 10));
    READS("chdir", syscall(SYS_chdir, bad));
    WRITES("getcwd", syscall(SYS_getcwd, bad, 4096));
    READS("chmod", syscall(SYS_chmod, bad, 0600));
    READS("truncate", syscall(SYS_truncate, bad, 0));
    READS("utimensat", syscall(SYS_utimensat, AT_FDCWD, bad, 0, 0));
    READS("statx", syscall(SYS_statx, AT_FDCWD, bad, 0, 0x7ff, buffer));
    READS("execve", syscall(SYS_execve, bad, 0, 0));
    int d = open("/", O_RDONLY);
    WRITES("getdents64", syscall(SYS_getdents64, d, bad, 4096));
    close(d);
    char name[] = "/tmp/vsrun-conformance-XXXXXX";
    int f = mkstemp(name);
    unlink(name);
    READS("write", write(f, bad, 10));
    CHECK(write(f, "0123456789", 10));
    WRITES("pread", pread(f, bad, 10, 0));
    READS("pwrite", pwrite(f, bad, 10, 0));
    READS("writev", writev(f, (void *)bad, 1));
    for (int command = 0; command < 2; command++) {
        READS(command ? "F_SETLK" : "F_GETLK", fcntl(f, command ? F_SETLK : F_GETLK, bad));
    }
    struct flock all = {F_WRLCK, SEEK_SET, 0, 0, 0};
    (void)all;
    WRITES("fstat", syscall(SYS_fstat, f, bad));
    WRITES("FIONREAD", ioctl(f, FIONREAD, bad));
    READS("FIONBIO", ioctl(f, FIONBIO, bad));
    // A mapping beyond the end of its file: SIGBUS to the program, EFAULT in a call.
    char *beyond = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    int p[2];
    CHECK(pipe(p));
    CHECK(write(p[1], beyond + 4096, 10));
    CHECK(write(p[1], "0123456789", 10));
    CHECK(read(p[0], beyond + 4096, 10));
    CHECK(read(p[0], beyond, 10));
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, beyond + 4096, 0, 8));
    close(p[0]);
    close(p[1]);
    close(f);
}

static const struct group groups[] = {
    {"pipes", pipes},
    {"local_streams", local_streams},
    {"local_datagrams", local_datagrams},
    {"local_packets", local_packets},
    {"rights", rights},
    {"tcp", tcp},
    {"events", events},
    {"polls", polls},
    {"futexes", futexes},
    {"times", times},
    {"signals", signals},
    {"ipc", ipc},
    {"queues", queues},
    {"processes", processes},
    {"files", files},
    {0, 0},
};

int main(int argc, char **argv) {
    make_bads();
    return run_groups(groups, argc, argv);
}
