/* Threads that end by pthread_exit, or ask for their stacks, beside others that open files: the first of them has libc load what unwinds, under the
 * loader's lock and with a descriptor of its own; later ones find it there.  Buggy: nobody but the two threads is thought to open anything. */
#include "t.h"
#include <execinfo.h>
#include <fcntl.h>

static sem_t closed;
static int buggy;

static int open_and_close(void)
{
    int fd = open("/dev/null", O_RDONLY);
    assert(fd >= 3);
    MUST(close(fd));
    return fd;
}

static void *ends(void *unused)
{
    open_and_close();
    pthread_exit(unused);
}

static void again(void *unused)
{
    (void)unused;
    open_and_close();
}

static void *cleans(void *unused)
{
    pthread_cleanup_push(again, NULL);
    open_and_close();
    pthread_exit(unused);
    pthread_cleanup_pop(0);
    return unused;
}

static void *looks(void *unused)
{
    void *frames[4];
    open_and_close();
    assert(backtrace(frames, 4) > 0);
    return unused;
}

static void *first(void *unused)
{
    open_and_close();
    MUST(sem_post(&closed));
    pthread_exit(unused);
}

static void *second(void *unused)
{
    MUST(sem_wait(&closed));
    int fd = open_and_close();
    if (buggy) assert(fd == 3);
    pthread_exit(unused);
}

int main(int argc, char **argv)
{
    int stack = arg_is(argc, argv, "stack"), order = arg_is(argc, argv, "order");
    void *(*body)(void *) = stack ? looks : arg_is(argc, argv, "cleans") ? cleans : ends;
    buggy = arg_is(argc, argv, "buggy");
    MUST(sem_init(&closed, 0, 0));
    pthread_t a = go(order || buggy ? first : body, NULL);
    pthread_t b = go(order || buggy ? second : body, NULL);
    MUST(pthread_join(a, NULL));
    MUST(pthread_join(b, NULL));
    return 0;
}
