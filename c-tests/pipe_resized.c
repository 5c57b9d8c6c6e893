/* A pipe is resized by two processes, and a third asks how large it is, and who has a segment attached that goes with the first: a change
 * of the size and a look at it have an order. "both": it was changed to 4096 and then to 8192, seen so while the first still had the
 * segment. "fixed": all has been waited for. */
#include "t.h"
#include <fcntl.h>
#include <sys/shm.h>

int main(int argc, char **argv)
{
    int ends[2], first, second;
    int fixed = arg_is(argc, argv, "fixed");
    MUST(pipe(ends));
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    MUST(id < 0 || shmat(id, NULL, 0) == (void *)-1);
    pid_t a = fork();
    if (a == 0) {
        MUST(fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096);
        _exit(0);
    }
    if (fixed)
        MUST(waitpid(a, &first, 0) != a);
    pid_t b = fork();
    if (b == 0) {
        struct shmid_ds ds;
        MUST(shmctl(id, IPC_STAT, &ds));
        _exit((int)ds.shm_nattch * 10 + (fcntl(ends[0], F_GETPIPE_SZ) == 8192));
    }
    if (fixed)
        MUST(waitpid(b, &second, 0) != b);
    MUST(fcntl(ends[0], F_SETPIPE_SZ, 8192) != 8192);
    if (!fixed)
        MUST(waitpid(a, &first, 0) != a || waitpid(b, &second, 0) != b);
    int size = fcntl(ends[0], F_GETPIPE_SZ);
    MUST(shmctl(id, IPC_RMID, NULL));
    assert(WEXITSTATUS(second) != 31 || size != 8192);
    return 0;
}
