/* A process that ends gives the locks of its open files back (flock, F_OFD_SETLK) before it is over: its parent may get one, and find that the
   process cannot be waited for yet. */
#define _GNU_SOURCE
#include "t.h"
#include <fcntl.h>
#include <sys/file.h>

static void lock(int file, int ofd)
{
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (ofd)
        MUST(fcntl(file, F_OFD_SETLKW, &all));
    else
        MUST(flock(file, LOCK_EX));
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/locks_endXXXXXX";
    int file = mkstemp(name), other = open(name, O_RDWR), ready[2];
    int ofd = argc > 1 && strcmp(argv[1], "ofd") == 0;
    char byte;

    assert(file >= 0 && other >= 0);
    unlink(name);
    MUST(pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        close(other);
        other = open("/dev/null", O_RDONLY);
        lock(file, ofd);
        assert(write(ready[1], "x", 1) == 1);
        _exit(0);
    }
    close(file);
    assert(read(ready[0], &byte, 1) == 1);
    lock(other, ofd);
    pid_t waited = waitpid(child, NULL, WNOHANG);
    assert(argc > 2 ? waited != 0 : waited != child);
    return 0;
}
