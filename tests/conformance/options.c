// Commands, options and flags that nobody knows, and what those that are known give at first.
#include "check.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/futex.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static void prctls(void) {
    CHECK(prctl(9999));
    CHECK(prctl(-1));
    CHECK(prctl(PR_GET_DUMPABLE));
    CHECK(prctl(PR_SET_DUMPABLE, 5));
    CHECK(prctl(PR_GET_KEEPCAPS));
    CHECK(prctl(PR_SET_KEEPCAPS, 5));
    CHECK(prctl(PR_SET_PDEATHSIG, 65));
    CHECK(prctl(PR_SET_PDEATHSIG, -1));
    int value = 77;
    CHECK(prctl(PR_GET_PDEATHSIG, &value));
    say("signal %d", value);
    CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR1));
    CHECK(prctl(PR_GET_PDEATHSIG, &value));
    say("signal %d", value);
    pid_t child = fork();
    if (child == 0) {
        value = 77;
        prctl(PR_GET_PDEATHSIG, &value);
        _exit(value);
    }
    waitpid(child, &value, 0);
    say("signal in a child %d", WEXITSTATUS(value));
    CHECK(prctl(PR_SET_PDEATHSIG, 0));
    CHECK(prctl(PR_SET_NAME, "a name that is too long"));
    char name[17] = "";
    CHECK(prctl(PR_GET_NAME, name));
    say("name %s", name);
    CHECK(prctl(PR_GET_TSC, &value));
    CHECK(prctl(PR_SET_TSC, 3));
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    CHECK(prctl(PR_GET_TIMERSLACK));
    CHECK(prctl(PR_SET_TIMERSLACK, 1000));
    CHECK(prctl(PR_GET_TIMERSLACK));
    CHECK(prctl(PR_SET_TIMERSLACK, 0));
    CHECK(prctl(PR_GET_TIMERSLACK));
    CHECK(prctl(PR_GET_SECCOMP));
    CHECK(prctl(PR_CAPBSET_READ, 99));
    CHECK(prctl(PR_GET_CHILD_SUBREAPER, &value));
    say("subreaper %d", value);
}

static void futexes(void) {
    static uint32_t word[4] = {5};
    char *odd = (char *)word + 1;
    CHECK(syscall(SYS_futex, word, 99, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_FD, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, 1 << 20, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, odd, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, odd, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0));
    CHECK(syscall(SYS_futex, odd, FUTEX_WAKE, 1, 0, 0, 0));
    CHECK(syscall(SYS_futex, odd, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 6, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, 6, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, 5, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, 1, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, -1, 0, 0, 0));
    CHECK(syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, word + 1, 6));
    CHECK(syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, -1, 1, word + 1, 5));
    CHECK(syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 1, -1L, word + 1, 5));
    CHECK(syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, odd, 5));
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 1, 1, word + 1, 0x70000000));
    CHECK(syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 1, 1, word + 1, 0x0f000000));
    CHECK(syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word + 1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word + 1, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(word[1] == (uint32_t)gettid());
    CHECK(syscall(SYS_futex, word + 1, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word + 1, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_futex, word + 1, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0));
    CHECK(syscall(SYS_set_robust_list, word, 23));
}

static void epolls(void) {
    int ep = epoll_create1(0), e = eventfd(1, 0), other = epoll_create1(0);
    struct epoll_event in = {EPOLLIN, {.u64 = 1}};
    CHECK(epoll_ctl(ep, 99, e, &in));
    CHECK(epoll_ctl(ep, 0, e, &in));
    CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, e, &in));
    CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, e, 0));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, e, 0));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, e, &in));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, e, &in));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ep, &in));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, other, &in));
    CHECK(epoll_ctl(other, EPOLL_CTL_ADD, ep, &in));
    struct epoll_event exclusive = {EPOLLIN | EPOLLEXCLUSIVE, {.u64 = 1}};
    CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, e, &exclusive));
    CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, other, 0));
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, other, &exclusive));
    exclusive.events |= EPOLLONESHOT;
    CHECK(epoll_ctl(other, EPOLL_CTL_ADD, e, &exclusive));
    exclusive.events = EPOLLPRI | EPOLLEXCLUSIVE;
    CHECK(epoll_ctl(other, EPOLL_CTL_ADD, e, &exclusive));
    struct epoll_event got[2];
    CHECK(epoll_wait(ep, got, 2, 0));
    say("events %x", got[0].events);
    CHECK(epoll_wait(ep, got, -1, 0));
    CHECK(epoll_wait(ep, got, 1 << 30, 0));
    sigset_t set;
    sigemptyset(&set);
    CHECK(syscall(SYS_epoll_pwait, ep, got, 1, 0, &set, 4));
    int d = dup(e);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, d, &in));
    close(e);
    // The description is still there by its other name.
    CHECK(epoll_wait(ep, got, 2, 0));
    close(d);
    CHECK(epoll_wait(ep, got, 2, 0));
    close(other);
    close(ep);
}

static void exclusive(void) {
    int ep = epoll_create1(0), e = eventfd(1, 0);
    struct epoll_event event = {EPOLLIN | EPOLLEXCLUSIVE, {.u64 = 1}};
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, e, &event));
    CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, e, &event));
    CHECK(epoll_wait(ep, &event, 1, 0));
    close(e);
    close(ep);
}

static void option(int fd, const char *what, int level, int name) {
    int value = -77;
    socklen_t len = sizeof value;
    int r = getsockopt(fd, level, name, &value, &len);
    if (r == 0)
        say("%s: %d, %u bytes", what, value, len);
    else
        say("%s: -1 %s", what, strerrorname_np(errno));
}

static void socket_options(void) {
    static const struct {
        const char *name;
        int domain, type;
    } kinds[] = {{"local stream", AF_UNIX, SOCK_STREAM}, {"local datagram", AF_UNIX, SOCK_DGRAM},
                 {"tcp", AF_INET, SOCK_STREAM},          {"udp", AF_INET, SOCK_DGRAM},
                 {"tcp6", AF_INET6, SOCK_STREAM}};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int s = socket(kinds[i].domain, kinds[i].type, 0);
        say("%s: %d", kinds[i].name, s >= 0);
        option(s, "SO_TYPE", SOL_SOCKET, SO_TYPE);
        option(s, "SO_DOMAIN", SOL_SOCKET, SO_DOMAIN);
        option(s, "SO_PROTOCOL", SOL_SOCKET, SO_PROTOCOL);
        option(s, "SO_ERROR", SOL_SOCKET, SO_ERROR);
        option(s, "SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN);
        option(s, "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR);
        option(s, "SO_REUSEPORT", SOL_SOCKET, SO_REUSEPORT);
        option(s, "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE);
        option(s, "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST);
        option(s, "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE);
        option(s, "SO_LINGER", SOL_SOCKET, SO_LINGER);
        option(s, "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT);
        option(s, "SO_PRIORITY", SOL_SOCKET, SO_PRIORITY);
        option(s, "SO_PASSCRED", SOL_SOCKET, SO_PASSCRED);
        option(s, "IP_TTL", IPPROTO_IP, IP_TTL);
        option(s, "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY);
        option(s, "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT);
        option(s, "IPV6_V6ONLY", IPPROTO_IPV6, IPV6_V6ONLY);
        option(s, "level 77", 77, 1);
        int one = 1;
        CHECK(setsockopt(s, 77, 1, &one, 4));
        CHECK(setsockopt(s, SOL_SOCKET, SO_TYPE, &one, 4));
        CHECK(setsockopt(s, SOL_SOCKET, SO_ERROR, &one, 4));
        CHECK(setsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &one, 4));
        CHECK(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, 3));
        CHECK(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, 0));
        CHECK(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &one, 4));
        option(s, "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE);
        CHECK(setsockopt(s, SOL_SOCKET, SO_LINGER, &one, 4));
        struct timeval t = {0, 1000000};
        CHECK(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
        CHECK(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, 4));
        t = (struct timeval){-1, 0};
        CHECK(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
        socklen_t len = -1;
        CHECK(getsockopt(s, SOL_SOCKET, SO_TYPE, &one, &len));
        len = 2;
        one = -1;
        CHECK(getsockopt(s, SOL_SOCKET, SO_TYPE, &one, &len));
        say("two bytes: %x, length %u", one, len);
        len = 100;
        CHECK(getsockopt(s, SOL_SOCKET, SO_TYPE, &one, &len));
        say("length %u", len);
        close(s);
    }
}

// Options of TCP that daemons set, and what becomes of their values.
static void tcp_options(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    option(s, "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT);
    static const int seconds[] = {1, 2, 3, 7, 8, 30, 100, 1000, -5, 0, 1 << 30};
    for (unsigned i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        CHECK(setsockopt(s, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds[i], 4));
        option(s, "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT);
    }
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds, 3));
    char name[32] = "";
    socklen_t len = sizeof name;
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
    CHECK(getsockopt(s, IPPROTO_TCP, TCP_CONGESTION, name, &len));
    say("%s, length %u", name, len);
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno\0more", 9));
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "no such thing", 13));
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno and a name that is too long", 32));
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "ren", 3));
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "", 0));
    memset(name, 'x', sizeof name);
    len = 3;
    CHECK(getsockopt(s, IPPROTO_TCP, TCP_CONGESTION, name, &len));
    say("%.5s, length %u", name, len);
    close(s);
    s = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
    CHECK(setsockopt(s, IPPROTO_TCP, TCP_DEFER_ACCEPT, seconds, 4));
    close(s);
}

// What comes along with a datagram where times are asked for: lengths, types, and whether the time lies between those before and after.
static void stamped(const char *what, int from, int to, int name) {
    int one = 1, zero = 0;
    CHECK(setsockopt(to, SOL_SOCKET, name, &one, 4));
    option(to, "SO_TIMESTAMP", SOL_SOCKET, SO_TIMESTAMP);
    option(to, "SO_TIMESTAMPNS", SOL_SOCKET, SO_TIMESTAMPNS);
    option(to, "SO_TIMESTAMP_NEW", SOL_SOCKET, SO_TIMESTAMP_NEW);
    option(to, "SO_TIMESTAMPNS_NEW", SOL_SOCKET, SO_TIMESTAMPNS_NEW);
    for (int room = 64; room >= 0; room -= 32) {
        struct timespec before, after;
        char byte = 'x', control[64] = "";
        struct iovec v = {&byte, 1};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
        // The kernel begins to take stamps a little after it has been asked to (net_enable_timestamp).
        usleep(20000);
        clock_gettime(CLOCK_REALTIME, &before);
        send(from, &byte, 1, 0);
        // The first ones after times are asked for may get theirs when they are received.
        ssize_t got = recvmsg(to, &m, 0);
        clock_gettime(CLOCK_REALTIME, &after);
        say("%s: %zd, flags %x, control %zu", what, got, m.msg_flags, m.msg_controllen);
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            long parts = name == SO_TIMESTAMP || name == SO_TIMESTAMP_NEW ? 1000 : 1;
            long at = t.tv_sec * 1000000000 + t.tv_nsec * parts, first = before.tv_sec * 1000000000 + before.tv_nsec;
            say("level %d, type %d, length %zu, in time %d", c->cmsg_level, c->cmsg_type, (size_t)c->cmsg_len,
                at >= first / parts * parts && at <= after.tv_sec * 1000000000 + after.tv_nsec);
        }
    }
    CHECK(setsockopt(to, SOL_SOCKET, name, &zero, 4));
    option(to, "SO_TIMESTAMP", SOL_SOCKET, SO_TIMESTAMP);
}

static void stamps(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    stamped("local", pair[0], pair[1], SO_TIMESTAMP);
    stamped("local, ns", pair[0], pair[1], SO_TIMESTAMPNS);
    stamped("local, new", pair[0], pair[1], SO_TIMESTAMP_NEW);
    stamped("local, ns, new", pair[0], pair[1], SO_TIMESTAMPNS_NEW);
    int one = 1;
    CHECK(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &one, 4));
    stamped("local, with credentials", pair[0], pair[1], SO_TIMESTAMP);
    close(pair[0]);
    close(pair[1]);
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    bind(to, (void *)&a, sizeof a);
    getsockname(to, (void *)&a, &len);
    connect(from, (void *)&a, sizeof a);
    stamped("udp", from, to, SO_TIMESTAMP);
    stamped("udp, ns", from, to, SO_TIMESTAMPNS);
    stamped("udp, new", from, to, SO_TIMESTAMP_NEW);
    stamped("udp, ns, new", from, to, SO_TIMESTAMPNS_NEW);
    close(from);
    close(to);
}

// Receives what has come, and says what came along.
static void came(const char *what, int s, size_t room) {
    char bytes[8], control[160], text[2][INET6_ADDRSTRLEN];
    memset(control, 0, sizeof control);
    struct iovec v = {bytes, sizeof bytes};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
    ssize_t got = recvmsg(s, &m, 0);
    say("%s, room %zu: %zd, flags %x, control %zu", what, room, got, m.msg_flags, m.msg_controllen);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        say("level %d, type %d, length %zu", c->cmsg_level, c->cmsg_type, (size_t)c->cmsg_len);
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo *p = (void *)CMSG_DATA(c);
            say("interface %d, own %s, sent to %s", p->ipi_ifindex, inet_ntop(AF_INET, &p->ipi_spec_dst, text[0], sizeof text[0]),
                inet_ntop(AF_INET, &p->ipi_addr, text[1], sizeof text[1]));
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo *p = (void *)CMSG_DATA(c);
            say("interface %d, sent to %s", (int)p->ipi6_ifindex, inet_ntop(AF_INET6, &p->ipi6_addr, text[0], sizeof text[0]));
        }
    }
}

// Sends from `s`, as from that interface and address.
static void send_from(int s, struct sockaddr_in *to, int interface, const char *from, size_t size) {
    char control[64] = "";
    struct iovec v = {"yes", 3};
    struct msghdr m = {.msg_name = to, .msg_namelen = to ? sizeof *to : 0, .msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    struct in_pktinfo p = {.ipi_ifindex = interface};
    inet_pton(AF_INET, from, &p.ipi_spec_dst);
    *c = (struct cmsghdr){CMSG_LEN(size), IPPROTO_IP, IP_PKTINFO};
    memcpy(CMSG_DATA(c), &p, size < sizeof p ? size : sizeof p);
    CHECK(sendmsg(s, &m, 0));
}

static void packets(void) {
    int one = 1, zero = 0, seven = 7;
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET}, b = a;
    socklen_t len = sizeof a;
    bind(to, (void *)&a, sizeof a);
    getsockname(to, (void *)&a, &len);
    option(to, "IP_PKTINFO", IPPROTO_IP, IP_PKTINFO);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sendto(from, "x", 1, 0, (void *)&a, sizeof a);
    came("not asked", to, 96);
    sendto(from, "x", 1, 0, (void *)&a, sizeof a);
    CHECK(setsockopt(to, IPPROTO_IP, IP_PKTINFO, &seven, 4));
    came("asked too late", to, 96);
    option(to, "IP_PKTINFO", IPPROTO_IP, IP_PKTINFO);
    const char *hosts[] = {"127.0.0.1", "127.3.2.1", "0.0.0.0"};
    for (int i = 0; i < 3; i++) {
        inet_pton(AF_INET, hosts[i], &a.sin_addr);
        sendto(from, "x", 1, 0, (void *)&a, sizeof a);
        came(hosts[i], to, 96);
    }
    for (int room = 40; room >= 0; room -= 4) {
        sendto(from, "x", 1, 0, (void *)&a, sizeof a);
        came("little room", to, room);
    }
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(from, (void *)&a, sizeof a);
    send(from, "x", 1, 0);
    came("connected", to, 96);
    CHECK(setsockopt(to, SOL_SOCKET, SO_TIMESTAMP, &one, 4));
    usleep(20000);
    for (int room = 96; room >= 16; room -= 8) {
        send(from, "x", 1, 0);
        came("with a stamp", to, room);
    }
    CHECK(setsockopt(to, SOL_SOCKET, SO_TIMESTAMP, &zero, 4));
    CHECK(setsockopt(to, IPPROTO_IP, IP_PKTINFO, &zero, 4));
    send(from, "x", 1, 0);
    came("not any more", to, 96);
    CHECK(setsockopt(to, IPPROTO_IP, IP_PKTINFO, &one, 1));
    option(to, "IP_PKTINFO", IPPROTO_IP, IP_PKTINFO);
    // Answers from where the question went.
    len = sizeof b;
    getsockname(from, (void *)&b, &len);
    send_from(to, &b, 0, "0.0.0.0", 12);
    came("an answer", from, 96);
    send_from(to, &b, 1, "127.0.0.1", 12);
    came("an answer", from, 96);
    send_from(to, &b, 0, "10.1.2.3", 12);
    send_from(to, &b, 0, "0.0.0.0", 11);
    send_from(to, &b, 0, "0.0.0.0", 13);
    close(from);
    close(to);

    int from6 = socket(AF_INET6, SOCK_DGRAM, 0), to6 = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 c = {.sin6_family = AF_INET6};
    len = sizeof c;
    bind(to6, (void *)&c, sizeof c);
    getsockname(to6, (void *)&c, &len);
    option(to6, "IPV6_RECVPKTINFO", IPPROTO_IPV6, IPV6_RECVPKTINFO);
    CHECK(setsockopt(to6, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, 1));
    CHECK(setsockopt(to6, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, 4));
    option(to6, "IPV6_RECVPKTINFO", IPPROTO_IPV6, IPV6_RECVPKTINFO);
    option(to6, "IP_PKTINFO", IPPROTO_IP, IP_PKTINFO);
    const char *hosts6[] = {"::1", "::", "::ffff:127.0.0.1", "::ffff:127.9.8.7"};
    for (int both = 0; both < 2; both++) {
        for (int i = 0; i < 4; i++) {
            inet_pton(AF_INET6, hosts6[i], &c.sin6_addr);
            sendto(from6, "x", 1, 0, (void *)&c, sizeof c);
            came(hosts6[i], to6, 96);
        }
        CHECK(setsockopt(to6, IPPROTO_IP, IP_PKTINFO, &one, 4));
    }
    close(from6);
    close(to6);

    int t = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(setsockopt(t, IPPROTO_IP, IP_PKTINFO, &one, 4));
    option(t, "IP_PKTINFO of TCP", IPPROTO_IP, IP_PKTINFO);
    CHECK(setsockopt(t, SOL_SOCKET, SO_TIMESTAMP, &one, 4));
    option(t, "SO_TIMESTAMP of TCP", SOL_SOCKET, SO_TIMESTAMP);
    close(t);
    t = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(setsockopt(t, IPPROTO_IP, IP_PKTINFO, &one, 4));
    close(t);
}

static void member(const char *what, int s, int name, const char *group, const char *own, int interface, int len) {
    struct ip_mreqn r = {.imr_ifindex = interface};
    inet_pton(AF_INET, group, &r.imr_multiaddr);
    inet_pton(AF_INET, own, &r.imr_address);
    int result = setsockopt(s, IPPROTO_IP, name, &r, len);
    say("%s %s %s %d %d: %s", what, group, own, interface, len, result == 0 ? "0" : strerrorname_np(errno));
}

static void groups_joined(void) {
    int s = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
    struct ip_mreqn r;
    for (int i = 0; i < 2; i++) {
        int name = i == 0 ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP;
        const char *what = i == 0 ? "join" : "leave";
        member(what, s, name, "239.1.2.3", "127.0.0.1", 0, 12);
        member(what, s, name, "239.1.2.3", "127.0.0.1", 0, 12);
        member(what, s, name, "239.1.2.4", "127.0.0.1", 0, 8);
        member(what, s, name, "239.1.2.4", "0.0.0.0", 1, 12);
        member(what, s, name, "239.1.2.5", "0.0.0.0", 1, 12);
        member(what, s, name, "239.1.2.6", "127.5.5.5", 0, 8);
        member(what, s, name, "239.1.2.6", "127.0.0.1", 0, 8);
        member(what, s, name, "224.0.0.1", "127.0.0.1", 0, 8);
        member(what, s, name, "10.0.0.1", "127.0.0.1", 0, 8);
        member(what, s, name, "0.0.0.0", "127.0.0.1", 0, 8);
        member(what, s, name, "239.1.2.7", "10.250.1.1", 0, 8);
        member(what, s, name, "239.1.2.7", "127.0.0.1", 999, 12);
        member(what, s, name, "239.1.2.7", "127.0.0.1", 0, 7);
        member(what, s, name, "239.1.2.7", "127.0.0.1", 0, 0);
        socklen_t len = sizeof r;
        CHECK(getsockopt(s, IPPROTO_IP, name, &r, &len));
    }
    option(s, "IP_MULTICAST_IF", IPPROTO_IP, IP_MULTICAST_IF);
    member("send by", s, IP_MULTICAST_IF, "239.1.2.7", "127.0.0.1", 0, 8);
    option(s, "IP_MULTICAST_IF", IPPROTO_IP, IP_MULTICAST_IF);
    member("send by", s, IP_MULTICAST_IF, "0.0.0.0", "127.0.0.1", 0, 4);
    option(s, "IP_MULTICAST_IF", IPPROTO_IP, IP_MULTICAST_IF);
    member("send by", s, IP_MULTICAST_IF, "127.0.0.1", "127.0.0.1", 0, 4);
    option(s, "IP_MULTICAST_IF", IPPROTO_IP, IP_MULTICAST_IF);
    member("send by", s, IP_MULTICAST_IF, "0.0.0.0", "0.0.0.0", 1, 12);
    option(s, "IP_MULTICAST_IF", IPPROTO_IP, IP_MULTICAST_IF);
    member("send by", s, IP_MULTICAST_IF, "0.0.0.0", "0.0.0.0", 999, 12);
    member("send by", s, IP_MULTICAST_IF, "10.250.1.1", "10.250.1.1", 0, 8);
    member("send by", s, IP_MULTICAST_IF, "127.0.0.1", "127.0.0.1", 0, 3);
    close(s);
    s = socket(AF_INET, SOCK_STREAM, 0);
    member("join", s, IP_ADD_MEMBERSHIP, "239.1.2.3", "127.0.0.1", 0, 12);
    member("leave", s, IP_DROP_MEMBERSHIP, "239.1.2.3", "127.0.0.1", 0, 12);
    member("send by", s, IP_MULTICAST_IF, "127.0.0.1", "127.0.0.1", 0, 4);
    close(s);
    s = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &one, 4));
    close(s);
}

// The loopback interface by every way to ask for it.
static void interface_ioctl(int s, const char *name, const char *what, unsigned long command) {
    struct ifreq r;
    memset(&r, 0x5a, sizeof r);
    strcpy(r.ifr_name, name);
    int result = ioctl(s, command, &r);
    if (result < 0) {
        say("%s of %s: %s", what, name, strerrorname_np(errno));
        return;
    }
    char bytes[49] = "";
    int n = command == SIOCGIFFLAGS ? 2 : command == SIOCGIFADDR || command == SIOCGIFNETMASK || command == SIOCGIFHWADDR ? 8 : 4;
    for (int i = 0; i < n; i++)
        sprintf(bytes + 2 * i, "%02x", ((unsigned char *)&r.ifr_ifru)[i]);
    say("%s of %s: %d, %s", what, name, result, bytes);
}

static void interfaces(void) {
    static const struct {
        const char *name;
        unsigned long command;
    } asked[] = {{"flags", SIOCGIFFLAGS}, {"address", SIOCGIFADDR},   {"mask", SIOCGIFNETMASK}, {"mtu", SIOCGIFMTU},
                 {"index", SIOCGIFINDEX}, {"hardware", SIOCGIFHWADDR}, {"queue", SIOCGIFTXQLEN}, {"metric", SIOCGIFMETRIC}};
    int kinds[] = {socket(AF_INET, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_STREAM, 0)};
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++) {
            interface_ioctl(kinds[k], "lo", asked[i].name, asked[i].command);
            interface_ioctl(kinds[k], "nobody0", asked[i].name, asked[i].command);
        }
    struct ifreq r = {.ifr_ifindex = 1};
    CHECK(ioctl(kinds[0], SIOCGIFNAME, &r));
    say("name %s", r.ifr_name);
    r.ifr_ifindex = 12345;
    CHECK(ioctl(kinds[0], SIOCGIFNAME, &r));
    char name[IF_NAMESIZE];
    say("index %u, name %s", if_nametoindex("lo"), if_indextoname(1, name));
    CHECK(if_nametoindex("nobody0"));
    struct ifaddrs *all, *one;
    CHECK(getifaddrs(&all));
    for (one = all; one; one = one->ifa_next)
        if (!strcmp(one->ifa_name, "lo")) {
            char host[64] = "";
            int family = one->ifa_addr->sa_family;
            if (family == AF_INET)
                inet_ntop(family, &((struct sockaddr_in *)one->ifa_addr)->sin_addr, host, sizeof host);
            else if (family == AF_INET6)
                inet_ntop(family, &((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, host, sizeof host);
            say("%s: family %d, flags %x, %s, data %d", one->ifa_name, family, one->ifa_flags, host, one->ifa_data != 0);
        }
    freeifaddrs(all);
    close(kinds[0]);
    close(kinds[1]);
}

// Asks one question, and says how the first message of the answer begins.
static void ask(int s, const char *what, int type, int flags, int family, int index) {
    struct {
        struct nlmsghdr h;
        struct ifinfomsg i;
    } question = {{sizeof question, type, flags, 77, 0}, {.ifi_family = family, .ifi_index = index}};
    say("%s: sent %zd", what, send(s, &question, sizeof question, 0));
    for (;;) {
        char answer[16384] __attribute__((aligned(8)));
        ssize_t n = recv(s, answer, sizeof answer, MSG_DONTWAIT);
        if (n < 0) {
            say("%s: %s", what, strerrorname_np(errno));
            return;
        }
        for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
            int number = *(int *)NLMSG_DATA(h), about = number;
            if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_NEWADDR)
                about = ((struct ifinfomsg *)NLMSG_DATA(h))->ifi_index;
            // The machine may have other interfaces.
            if (h->nlmsg_type == NLMSG_ERROR)
                say("error %d, length %u, flags %x", number, h->nlmsg_len, h->nlmsg_flags);
            else if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == RTM_NEWADDR && ((struct ifaddrmsg *)NLMSG_DATA(h))->ifa_index == 1 ||
                     h->nlmsg_type == RTM_NEWLINK && about == 1)
                say("type %d, flags %x, number %u, its own %d", h->nlmsg_type, h->nlmsg_flags, h->nlmsg_seq, h->nlmsg_pid == (unsigned)getpid());
        }
    }
}

static void netlink(void) {
    CHECK(socket(AF_NETLINK, SOCK_STREAM, NETLINK_ROUTE));
    int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), other = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE);
    option(s, "SO_TYPE", SOL_SOCKET, SO_TYPE);
    option(other, "SO_TYPE", SOL_SOCKET, SO_TYPE);
    option(s, "SO_DOMAIN", SOL_SOCKET, SO_DOMAIN);
    option(s, "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY);
    struct sockaddr_nl a = {.nl_family = AF_NETLINK};
    socklen_t len = sizeof a;
    CHECK(getsockname(s, (void *)&a, &len));
    say("number %u, length %u", a.nl_pid, len);
    CHECK(bind(s, (void *)&a, 11));
    a.nl_family = AF_INET;
    CHECK(bind(s, (void *)&a, sizeof a));
    a.nl_family = AF_NETLINK;
    CHECK(bind(s, (void *)&a, sizeof a));
    CHECK(getsockname(s, (void *)&a, &len));
    CHECK(a.nl_pid == (unsigned)getpid());
    CHECK(bind(s, (void *)&a, sizeof a));
    CHECK(bind(other, (void *)&a, sizeof a));
    a.nl_pid++;
    CHECK(bind(s, (void *)&a, sizeof a));
    a.nl_pid = 0;
    CHECK(bind(other, (void *)&a, sizeof a));
    CHECK(getsockname(other, (void *)&a, &len));
    CHECK((int)a.nl_pid < -4096);
    CHECK(listen(s, 1));
    CHECK(shutdown(s, SHUT_RDWR));
    CHECK(recv(s, &a, sizeof a, MSG_DONTWAIT));
    ask(s, "links", RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, AF_UNSPEC, 0);
    ask(s, "links, acknowledged", RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP | NLM_F_ACK, AF_UNSPEC, 0);
    ask(s, "IPv4", RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, AF_INET, 0);
    ask(s, "IPv6", RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, AF_INET6, 0);
    ask(s, "one link", RTM_GETLINK, NLM_F_REQUEST, AF_UNSPEC, 1);
    ask(s, "one link, acknowledged", RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, AF_UNSPEC, 1);
    ask(s, "no such link", RTM_GETLINK, NLM_F_REQUEST, AF_UNSPEC, 12345);
    ask(s, "which link?", RTM_GETLINK, NLM_F_REQUEST, AF_UNSPEC, 0);
    ask(s, "no request", RTM_GETLINK, 0, AF_UNSPEC, 0);
    ask(s, "no request, acknowledged", RTM_GETLINK, NLM_F_ACK, AF_UNSPEC, 0);
    ask(s, "nothing", NLMSG_NOOP, NLM_F_REQUEST | NLM_F_ACK, AF_UNSPEC, 0);
    close(s);
    close(other);
}

// Options of sockets that nobody knows.
static void unknown_options(void) {
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    option(s, "SOL_SOCKET 9999", SOL_SOCKET, 9999);
    option(s, "IPPROTO_TCP 9999", IPPROTO_TCP, 9999);
    option(s, "IPPROTO_IP 9999", IPPROTO_IP, 9999);
    CHECK(setsockopt(s, SOL_SOCKET, 9999, &one, 4));
    CHECK(setsockopt(s, IPPROTO_TCP, 9999, &one, 4));
    CHECK(setsockopt(s, IPPROTO_IP, 9999, &one, 4));
    one = 0;
    CHECK(setsockopt(s, SOL_SOCKET, 9999, &one, 4));
    CHECK(setsockopt(s, IPPROTO_TCP, 9999, &one, 4));
    close(s);
}

static void sockets(void) {
    CHECK(socket(99, SOCK_STREAM, 0));
    CHECK(socket(-1, SOCK_STREAM, 0));
    CHECK(socket(AF_INET, 99, 0));
    CHECK(socket(AF_INET, 0, 0));
    CHECK(socket(AF_INET, SOCK_STREAM, 99));
    CHECK(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    CHECK(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
    CHECK(socket(AF_INET, SOCK_STREAM | 0x10, 0));
    CHECK(socket(AF_UNIX, SOCK_STREAM, 77));
    CHECK(socket(AF_UNIX, SOCK_RDM, 0));
    int pair[2];
    CHECK(socketpair(AF_INET, SOCK_STREAM, 0, pair));
    CHECK(socketpair(99, SOCK_STREAM, 0, pair));
    CHECK(socketpair(AF_UNIX, 99, 0, pair));
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(s, (void *)&a, 3));
    CHECK(bind(s, (void *)&a, 1));
    CHECK(bind(s, (void *)&a, 1000));
    CHECK(bind(s, (void *)&a, -1));
    a.sin_family = 99;
    CHECK(bind(s, (void *)&a, sizeof a));
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(0x01020304);
    CHECK(bind(s, (void *)&a, sizeof a));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(s, (void *)&a, sizeof a));
    CHECK(bind(s, (void *)&a, sizeof a));
    CHECK(connect(s, (void *)&a, 3));
    a.sin_port = htons(1);
    CHECK(connect(s, (void *)&a, sizeof a));
    CHECK(listen(s, -1));
    CHECK(listen(s, 0));
    CHECK(connect(s, (void *)&a, sizeof a));
    CHECK(getpeername(s, (void *)&a, &(socklen_t){sizeof a}));
    CHECK(shutdown(s, 3));
    CHECK(shutdown(s, -1));
    close(s);
    s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(recv(s, &a, 1, 0));
    CHECK(shutdown(s, SHUT_RD));
    CHECK(send(s, &a, 1, MSG_NOSIGNAL));
    close(s);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    CHECK(shutdown(pair[0], SHUT_WR));
    CHECK(send(pair[0], &a, 1, MSG_NOSIGNAL));
    CHECK(recv(pair[1], &a, 1, 0));
    CHECK(shutdown(pair[1], SHUT_RD));
    CHECK(recv(pair[1], &a, 1, 0));
    CHECK(shutdown(pair[0], SHUT_RDWR));
    CHECK(shutdown(pair[0], SHUT_RDWR));
    close(pair[0]);
    CHECK(send(pair[1], &a, 1, MSG_NOSIGNAL));
    close(pair[1]);
}

static void fcntls(void) {
    int p[2];
    pipe(p);
    CHECK(fcntl(p[0], F_GETFL));
    CHECK(fcntl(p[1], F_GETFL));
    CHECK(fcntl(p[0], F_SETFL, O_NONBLOCK | O_RDWR | O_CREAT | O_APPEND));
    CHECK(fcntl(p[0], F_GETFL));
    CHECK(fcntl(p[0], F_SETFL, 0));
    CHECK(fcntl(p[0], F_GETFL));
    CHECK(fcntl(p[0], F_SETFD, 77));
    CHECK(fcntl(p[0], F_GETFD));
    CHECK(fcntl(p[0], F_DUPFD, 50));
    CHECK(fcntl(p[0], F_DUPFD_CLOEXEC, 50));
    CHECK(fcntl(51, F_GETFD));
    close(50);
    close(51);
    CHECK(fcntl(p[0], F_SETPIPE_SZ, 0));
    CHECK(fcntl(p[0], F_SETPIPE_SZ, 5000));
    CHECK(fcntl(p[1], F_GETPIPE_SZ));
    CHECK(fcntl(p[0], F_SETPIPE_SZ, -1));
    CHECK(fcntl(p[0], F_SETPIPE_SZ, 1 << 31));
    int value = 77;
    CHECK(ioctl(p[0], FIONREAD, &value));
    say("value %d", value);
    value = 1;
    CHECK(ioctl(p[0], FIONBIO, &value));
    CHECK(fcntl(p[0], F_GETFL));
    CHECK(ioctl(p[0], FIOCLEX));
    CHECK(fcntl(p[0], F_GETFD));
    CHECK(ioctl(p[0], FIONCLEX));
    CHECK(fcntl(p[0], F_GETFD));
    close(p[0]);
    close(p[1]);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fcntl(s, F_GETFL));
    CHECK(fcntl(s, F_GETFD));
    close(s);
    int e = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(fcntl(e, F_GETFL));
    CHECK(fcntl(e, F_GETFD));
    close(e);
}

static const struct group groups[] = {
    {"prctls", prctls},   {"futexes", futexes},
    {"epolls", epolls},   {"exclusive", exclusive},
    {"socket_options", socket_options}, {"unknown_options", unknown_options},
    {"tcp_options", tcp_options}, {"stamps", stamps}, {"packets", packets}, {"groups_joined", groups_joined},
    {"interfaces", interfaces}, {"netlink", netlink},
    {"sockets", sockets}, {"fcntls", fcntls},
    {0, 0},
};

int main(int argc, char **argv) {
    return run_groups(groups, argc, argv);
}
