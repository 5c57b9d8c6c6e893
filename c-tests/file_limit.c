/* A write beyond the limit of a file's size, with SIGXFSZ ignored: EFBIG. The assertion fails, and comes again. */
#include "t.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    char name[] = "/tmp/file_limitXXXXXX";
    struct rlimit three = { 3, RLIM_INFINITY };
    int file = mkstemp(name);

    (void)argv;
    assert(file >= 0);
    unlink(name);
    signal(SIGXFSZ, SIG_IGN);
    MUST(setrlimit(RLIMIT_FSIZE, &three));
    assert(write(file, "abc", 3) == 3);
    long n = write(file, "d", 1);
    int error = errno;
    three.rlim_cur = RLIM_INFINITY;
    MUST(setrlimit(RLIMIT_FSIZE, &three));
    assert(n == -1 && error == EFBIG);
    assert(argc < 2);
    return 0;
}
