/*
 * A file that one process writes in memory and another one uses. The order of such uses is not explored, so that nothing is said to be
 * complete: read: the other reads it; both: it maps it too; inherited: the mapping is older than the processes; private: it maps a
 * copy. waited: it does so when the writer has ended. shm: the file is in /dev/shm, so that it is shared memory like any other.
 */
#include "t.h"
#include <fcntl.h>

static char name[64];
static const char *how;
static pthread_mutex_t *lock;
static int *mine;

static int is(const char *word)
{
    return strcmp(how, word) == 0;
}

static int *map(int flags)
{
    int fd = open(name, O_RDWR);
    assert(fd >= 0);
    int *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, flags, fd, 0);
    assert(p != MAP_FAILED);
    MUST(close(fd));
    return p;
}

static void writer(void)
{
    int *p = is("inherited") ? mine : map(MAP_SHARED);
    MUST(pthread_mutex_lock(lock));
    *p = 1;
    MUST(pthread_mutex_unlock(lock));
}

static int value(void)
{
    int result;
    MUST(pthread_mutex_lock(lock));
    if (is("shm") || is("both") || is("private")) {
        result = *map(is("private") ? MAP_PRIVATE : MAP_SHARED);
    } else {
        int fd = open(name, O_RDONLY);
        assert(fd >= 0 && pread(fd, &result, sizeof result, 0) == sizeof result);
        MUST(close(fd));
    }
    MUST(pthread_mutex_unlock(lock));
    return result;
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "read";
    lock = shared(sizeof *lock);
    pthread_mutexattr_t attr;
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutex_init(lock, &attr));
    snprintf(name, sizeof name, is("shm") ? "/dev/shm/file_mapped.%d" : "/tmp/file_mapped.%d", (int)getpid());
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    assert(fd >= 0);
    MUST(ftruncate(fd, sizeof(int)));
    MUST(close(fd));
    if (is("inherited"))
        mine = map(MAP_SHARED);
    pid_t child = fork_run(writer);
    int waits = is("waited");
    if (waits)
        assert(reap(child) == 0);
    int seen = value();
    if (!waits)
        assert(reap(child) == 0);
    assert(seen == 1 || (!waits && seen == 0));
    MUST(unlink(name));
    return 0;
}
