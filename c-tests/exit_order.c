/* What a process gives back at its end it gives back in this order: robust mutexes, semaphores (SEM_UNDO), descriptors; then it is over.
 * "mutex", "undo": who has got that takes the process to be over. "early": who has got the mutex takes the pipe to be closed.
 * "late": the other way round, which is right, as is "fixed", which waits. */
#include "t.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sem.h>

int main(int argc, char **argv)
{
    pthread_mutex_t *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attr;
    int undoes = arg_is(argc, argv, "undo"), to[2], ready[2], status, set = -1;
    char byte = 0;

    if (undoes)
        set = semget(IPC_PRIVATE, 1, 0600);
    MUST(pipe(to));
    MUST(pipe(ready));
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(m, &attr));
    pid_t child = fork();
    if (child == 0) {
        struct sembuf up = { 0, 1, 0 }, down = { 0, -1, SEM_UNDO };
        if (undoes) {
            MUST(semop(set, &up, 1));
            MUST(semop(set, &down, 1));
        } else {
            MUST(pthread_mutex_lock(m));
        }
        MUST(write(ready[1], &byte, 1) != 1);
        _exit(0);
    }
    MUST(close(to[1]));
    MUST(read(ready[0], &byte, 1) != 1);
    if (undoes) {
        struct sembuf down = { 0, -1, 0 };
        MUST(semop(set, &down, 1));
        int over = waitpid(child, &status, WNOHANG) == child;
        MUST(semctl(set, 0, IPC_RMID));
        assert(over);
        return 0;
    }
    if (arg_is(argc, argv, "late")) {
        MUST(read(to[0], &byte, 1));
        assert(pthread_mutex_trylock(m) == EOWNERDEAD);
    } else {
        assert(pthread_mutex_lock(m) == EOWNERDEAD);
    }
    MUST(pthread_mutex_consistent(m));
    MUST(pthread_mutex_unlock(m));
    if (arg_is(argc, argv, "mutex")) {
        assert(waitpid(child, &status, WNOHANG) == child);
    } else if (arg_is(argc, argv, "early")) {
        struct pollfd end = { to[0], POLLIN, 0 };
        assert(poll(&end, 1, 0) == 1);
        MUST(waitpid(child, &status, 0) != child);
    } else {
        MUST(waitpid(child, &status, 0) != child);
        MUST(read(to[0], &byte, 1));
    }
    return 0;
}
