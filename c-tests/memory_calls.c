/* What the kernel does to memory for a call: "NAME" and "NAME-late": while another thread looks at it, or changes it, which comes first and
 * comes last; "NAME-fixed": when it is over. */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

static long area[1024];
/* The word of it that is looked at. */
static long *word = area;
static int ends[2], pair[2];
static struct sembuf up = { 0, 1, 0 };

/* Calls that write to the area. */
static void reads(void) { MUST(read(ends[0], area, 8) != 8); }
static void preads(void)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    MUST(fd < 0 || pread(fd, area, 8, 0) != 8);
}
static void reads_vector(void)
{
    struct iovec v = { area, 8 };
    MUST(readv(ends[0], &v, 1) != 8);
}
static void receives(void) { MUST(recv(pair[0], area, 8, 0) != 8); }
static void receives_message(void)
{
    struct iovec v = { area, 8 };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    MUST(recvmsg(pair[0], &m, 0) != 8);
}
/* In two parts: others may look at the first while it waits for the second. */
static void receives_all(void) { MUST(recv(ends[0], area, 16, MSG_WAITALL) != 16); }
static void names(void)
{
    socklen_t size = sizeof area;
    MUST(getsockname(pair[0], (struct sockaddr *)area, &size));
}
static void polls(void) { MUST(poll((struct pollfd *)area, 1, 0) != 1); }
static void looks_at_clock(void) { MUST(clock_gettime(CLOCK_MONOTONIC, (struct timespec *)area)); }
static void stats(void) { MUST(stat("/", (struct stat *)area)); }
static void draws(void) { MUST(getrandom(area, 8, 0) != 8); }
static void asks_timer(void) { MUST(getitimer(ITIMER_REAL, (struct itimerval *)area)); }
static void waits_for_events(void)
{
    struct epoll_event e = { .events = EPOLLOUT };
    int fd = epoll_create1(0);
    MUST(fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, ends[1], &e));
    MUST(epoll_wait(fd, (struct epoll_event *)area, 1, 0) != 1);
}
static void makes_pipe(void) { MUST(pipe((int *)area)); }
static void takes_message(void)
{
    long m[2] = { 3, 4 };
    int id = msgget(IPC_PRIVATE, 0600);
    MUST(id < 0 || msgsnd(id, m, 8, 0));
    MUST(msgrcv(id, area, 8, 0, 0) != 8 || msgctl(id, IPC_RMID, NULL));
}
/* How much that writes only the set says: it is said that this is not watched. */
static void asks_all(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    MUST(id < 0 || semctl(id, 0, GETALL, (unsigned short *)area) || semctl(id, 0, IPC_RMID));
}
static void asks_set(void)
{
    int id = semget(IPC_PRIVATE, 1, 0600);
    MUST(id < 0 || semctl(id, 0, IPC_STAT, (struct semid_ds *)area) || semctl(id, 0, IPC_RMID));
}
static void asks_directory(void) { MUST(!getcwd((char *)area, sizeof area)); }

/* Calls that read it. */
static void writes(void) { MUST(write(ends[1], area, 8) != 8); }
static void writes_vector(void)
{
    struct iovec v = { area, 8 };
    MUST(writev(ends[1], &v, 1) != 8);
}
static void sends(void) { MUST(send(ends[1], area, 8, 0) != 8); }
static void sends_message(void)
{
    struct iovec v = { area, 8 };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    MUST(sendmsg(ends[1], &m, 0) != 8);
}
static void queues_message(void)
{
    long m[2];
    int id = msgget(IPC_PRIVATE, 0600);
    MUST(id < 0 || msgsnd(id, area, 8, 0));
    MUST(msgrcv(id, m, 8, 0, 0) != 8 || msgctl(id, IPC_RMID, NULL) || write(ends[1], m + 1, 8) != 8);
}
static void writes_file(void)
{
    long value;
    int fd = memfd_create("file", 0);
    MUST(fd < 0 || pwrite(fd, area, 8, 0) != 8 || pread(fd, &value, 8, 0) != 8 || write(ends[1], &value, 8) != 8);
}
/* The second half has to wait for room, and is taken when there is some. */
static void writes_parts(void)
{
    MUST(write(ends[1], area, sizeof area) != sizeof area);
}
/* Under the lock of a stream, which others take too. */
static FILE *stream;
static void prints(void) { MUST(fwrite(area, 8, 1, stream) != 1 || fflush(stream)); }
static void ups(void)
{
    struct sembuf *op = (struct sembuf *)area;
    int id = semget(IPC_PRIVATE, 1, 0600);
    MUST(id < 0 || semop(id, op, 1));
    long value = semctl(id, 0, GETVAL);
    MUST(semctl(id, 0, IPC_RMID) || write(ends[1], &value, 8) != 8);
}

static const struct { const char *name; void (*call)(void); int in; } ALL[] = {
    { "read", reads, 0 },           { "pread", preads, 0 },         { "readv", reads_vector, 0 },   { "recv", receives, 0 },
    { "recvmsg", receives_message, 0 }, { "name", names, 0 },       { "poll", polls, 0 },           { "clock", looks_at_clock, 0 },
    { "stat", stats, 0 },           { "random", draws, 0 },         { "timer", asks_timer, 0 },     { "epoll", waits_for_events, 0 },
    { "pipe", makes_pipe, 0 },      { "msgrcv", takes_message, 0 }, { "msgtext", takes_message, 0 }, { "semctl", asks_set, 0 },       { "getall", asks_all, 0 },      { "cwd", asks_directory, 0 },
    { "write", writes, 1 },         { "writev", writes_vector, 1 }, { "send", sends, 1 },           { "semop", ups, 1 },
    { "sendmsg", sends_message, 1 }, { "msgsnd", queues_message, 1 }, { "file", writes_file, 1 }, { "parts", writes_parts, 1 },
    { "print", prints, 1 },         { "waitall", receives_all, 0 },
};

static int at;

static void *calls(void *unused)
{
    ALL[at].call();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;
    long found = 0, first;
    char name[32];
    MUST(argc != 2);
    snprintf(name, sizeof name, "%s", argv[1]);
    char *fixed = strstr(name, "-fixed");
    if (fixed)
        *fixed = 0;
    char *late = strstr(name, "-late");
    if (late)
        *late = 0;
    for (at = 0; strcmp(ALL[at].name, name); at++) {}
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || send(pair[1], "12345678", 8, 0) != 8);
    if (ALL[at].call == sends || ALL[at].call == sends_message || ALL[at].call == receives_all)
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    else
        MUST(pipe(ends) || (!ALL[at].in && write(ends[1], "12345678", 8) != 8));
    area[0] = area[1] = 0x5a5a5a5a5a5a5a5aL;
    if (!strcmp(name, "msgtext") || ALL[at].call == queues_message)
        word = area + 1;
    if (ALL[at].call == writes_parts) {
        word = area + 1000;
        *word = 5;
        MUST(fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096);
    }
    if (ALL[at].call == prints) {
        MUST(!(stream = fdopen(ends[1], "w")));
    }
    if (ALL[at].call == ups)
        memcpy(area, &up, sizeof up);
    if (ALL[at].call == polls)
        *(struct pollfd *)area = (struct pollfd){ .fd = ends[1], .events = POLLOUT };
    first = *word;
    MUST(pthread_create(&t, NULL, calls, NULL));
    if (ALL[at].call == receives_all)
        MUST(write(ends[1], "12345678", 8) != 8 || (fixed && write(ends[1], "12345678", 8) != 8));
    if (fixed)
        MUST(pthread_join(t, NULL));
    if (ALL[at].call == ups)
        ((struct sembuf *)area)->sem_op = 2;
    else if (ALL[at].call == writes_parts) {
        /* It has room once this has read, and the half that is still to come is what is there then. */
        long all[1024];
        for (long n = 0; n < (long)sizeof all; n += found) {
            MUST((found = read(ends[0], (char *)all + n, sizeof all / 2)) <= 0);
            *word = 7;
        }
        found = all[1000];
    } else if (ALL[at].call == prints) {
        flockfile(stream);
        *word = 7;
        funlockfile(stream);
    } else if (ALL[at].in)
        *word = 7;
    else
        found = *word;
    if (ALL[at].call == receives_all && !fixed)
        MUST(write(ends[1], "12345678", 8) != 8);
    if (!fixed)
        MUST(pthread_join(t, NULL));
    if (ALL[at].in && ALL[at].call != writes_parts)
        MUST(read(ends[0], &found, 8) != 8);
    if (ALL[at].call == ups)
        first = 1;
    /* What is written is seen in one order, what is read was changed in the other one. */
    if (late || (fixed && !ALL[at].in))
        assert(found != first);
    else
        assert(found == first);
    return 0;
}
