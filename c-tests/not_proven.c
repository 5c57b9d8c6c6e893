/*
 * What the reductions are not proven for: each search that reduces says so, and is not called complete.  not_proven VARIANT
 *   pi       two threads lock a futex with priority inheritance
 *   flock    two processes hold a file by flock, shared, and one asks for more
 *   getlk    two processes hold a part of a file, a third one asks who holds it
 *   plain    two threads and a mutex, for which they are proven
 */
#include "t.h"
#include "futex.h"
#include <fcntl.h>
#include <sys/file.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int word;
static const char name[] = "not_proven.file";
static int owners;

static void *taker(void *arg)
{
    if (futex(&word, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == 0)
        MUST(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    return arg;
}

static void *locker(void *arg)
{
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}

static void two(void *(*routine)(void *))
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        t[i] = go(routine, NULL);
    for (int i = 0; i < 2; i++)
        join(t[i]);
}

static void holder(void)
{
    int fd = open(name, O_RDWR);
    MUST(flock(fd, LOCK_SH));
    if (owners++ == 0)
        flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
}

static void record(int type, int command)
{
    static int fd = -1;
    struct flock part = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
    if (fd < 0)
        fd = open(name, O_RDWR);
    MUST(fcntl(fd, command, &part));
}

static void sharer(void)
{
    record(F_RDLCK, F_SETLK);
}

static void asker(void)
{
    record(F_WRLCK, F_GETLK);
}

static void processes(void (*first)(void), void (*second)(void))
{
    pid_t a = fork_run(first);
    owners++;
    pid_t b = fork_run(second);
    assert(reap(a) == 0);
    assert(reap(b) == 0);
}

int main(int argc, char **argv)
{
    close(open(name, O_CREAT | O_RDWR, 0600));
    if (arg_is(argc, argv, "pi")) {
        two(taker);
    } else if (arg_is(argc, argv, "flock")) {
        processes(holder, holder);
    } else if (arg_is(argc, argv, "getlk")) {
        sharer();
        processes(sharer, asker);
    } else if (arg_is(argc, argv, "plain")) {
        two(locker);
    } else {
        return 2;
    }
    unlink(name);
    return 0;
}
