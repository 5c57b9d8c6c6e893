/* Where datagrams were sent to, as the receiver is told: by what it had asked when they came.
   udp_pktinfo early | late | several */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../shim/include/vs.h"

static struct sockaddr_in place = {.sin_family = AF_INET};
static const char *hosts[] = {"127.0.0.1", "127.0.0.2"};

static void *sends(void *host)
{
    struct sockaddr_in to = place;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, host, &to.sin_addr);
    VS_assert(sendto(s, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
    close(s);
    return 0;
}

/* Receives one, and what is told of it. */
static struct in_pktinfo receive(int s)
{
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control;
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct in_pktinfo info;
    VS_assert(recvmsg(s, &m, 0) == 1);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    VS_assert(c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && c->cmsg_len == CMSG_LEN(sizeof info));
    memcpy(&info, CMSG_DATA(c), sizeof info);
    return info;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "early";
    int n = strcmp(how, "several") ? 1 : 2, one = 1, s = socket(AF_INET, SOCK_DGRAM, 0), seen = 0;
    socklen_t len = sizeof place;
    pthread_t t[2];
    VS_assert(bind(s, (struct sockaddr *)&place, sizeof place) == 0);
    VS_assert(getsockname(s, (struct sockaddr *)&place, &len) == 0);
    if (strcmp(how, "late"))
        setsockopt(s, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
    for (int i = 0; i < n; i++)
        pthread_create(&t[i], 0, sends, (void *)hosts[i]);
    /* The datagram may have come before. */
    setsockopt(s, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
    for (int i = 0; i < n; i++) {
        struct in_pktinfo info = receive(s);
        VS_assert(info.ipi_ifindex == 1);
        VS_assert(info.ipi_spec_dst.s_addr == info.ipi_addr.s_addr);
        seen |= 1 << (ntohl(info.ipi_addr.s_addr) & 3);
    }
    for (int i = 0; i < n; i++)
        pthread_join(t[i], 0);
    VS_assert(seen == (n == 1 ? 2 : 6));
    return 0;
}
