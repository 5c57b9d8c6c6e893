/* A thread in accept or epoll_wait is asked to end while descriptors are opened: libc loads what unwinds, with descriptors of its own, before
 * the request is there.  Buggy: the thread is thought to be over when it has been asked. */
#include "t.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static int ends[2];
static sem_t over;

static void gone(void *unused)
{
    (void)unused;
    sem_post(&over);
}

static void *accepts(void *unused)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(s, (void *)&any, sizeof any.sun_family));
    MUST(listen(s, 1));
    pthread_cleanup_push(gone, NULL);
    accept(s, NULL, NULL);
    pthread_cleanup_pop(0);
    assert(!"accept returned");
    return unused;
}

static void *waits(void *unused)
{
    struct epoll_event event = {.events = EPOLLIN};
    int e = epoll_create1(0);
    MUST(epoll_ctl(e, EPOLL_CTL_ADD, ends[0], &event));
    epoll_wait(e, &event, 1, -1);
    assert(!"epoll_wait returned");
    return unused;
}

int main(int argc, char **argv)
{
    int epoll = arg_is(argc, argv, "epoll");
    void *result;
    pthread_t t;
    MUST(sem_init(&over, 0, 0));
    MUST(pipe(ends));
    t = go(epoll ? waits : accepts, NULL);
    MUST(pthread_cancel(t));
    if (arg_is(argc, argv, "buggy")) assert(sem_trywait(&over) == 0);
    MUST(pthread_join(t, &result));
    assert(result == PTHREAD_CANCELED);
    MUST(close(open("/dev/null", O_RDONLY)));
    return 0;
}
