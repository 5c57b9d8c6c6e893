/* A pipe is watched for edges. Who has waited in read and leaves data there makes one more event (fs/pipe.c, wake_next_reader), which is not
   explored, but said. "tries": the reader does not wait, and all is explored. */
#include "t.h"
#include <fcntl.h>
#include <sys/epoll.h>

static int ends[2];

static void *reads(void *unused)
{
    char byte;
    long n = read(ends[0], &byte, 1);
    assert(n == 1 || n == -1 && errno == EAGAIN);
    return unused;
}

int main(int argc, char **argv)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };
    int epoll = epoll_create1(0);

    (void)argv;
    MUST(pipe(ends));
    if (argc > 1)
        MUST(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    pthread_t t = go(reads, NULL);
    assert(write(ends[1], "ab", 2) == 2);
    assert(epoll_wait(epoll, &event, 1, -1) == 1);
    join(t);
    int again = epoll_wait(epoll, &event, 1, 0);
    assert(again == 0 || again == 1 && argc == 1);
    return 0;
}
