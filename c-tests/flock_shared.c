/* A description of a file is shared by three processes: one locks it, another closes it, which comes to nothing, since the first has it
 * still, and the third makes them run in any order. "last": who locks it ends first, so that its close by the other gives the lock back. */
#include "t.h"
#include <fcntl.h>
#include <sys/file.h>

int main(int argc, char **argv)
{
    int last = arg_is(argc, argv, "last"), status;
    pthread_mutex_t *m = shared(sizeof *m);
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    MUST(pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(m, &robust));
    int set = semget(IPC_PRIVATE, 1, 0600);
    char path[] = "/tmp/vsrun-flock-XXXXXX";
    int fd = mkstemp(path);
    MUST(fd < 0 || set < 0);
    pid_t holder = fork();
    if (holder == 0) {
        MUST(pthread_mutex_lock(m));
        if (last)
            MUST(flock(fd, LOCK_EX));
        _exit(3);
    }
    pid_t closer = fork();
    if (closer == 0) {
        MUST(semctl(set, 0, GETVAL));
        close(fd);
        _exit(0);
    }
    if (last)
        close(fd);
    else
        MUST(flock(fd, LOCK_SH | LOCK_NB));
    MUST(waitpid(holder, &status, 0) != holder);
    int other = open(path, O_RDWR), free = flock(other, LOCK_EX | LOCK_NB);
    MUST(waitpid(closer, &status, 0) != closer);
    MUST(pthread_mutex_lock(m) != EOWNERDEAD);
    MUST(semctl(set, 0, IPC_RMID) || unlink(path));
    /* The last one may have closed it before, or not yet; who shares it with the locker may not. */
    assert(last ? free == 0 : free == -1);
    return 0;
}
