/* A process ends by exit while another thread of it writes to a file, which its parent looks at once it has waited: nothing, one byte or both
   may be there. "returns": main returns. "fixed": the thread is joined before. "ends": each thread ends by itself. */
#include "t.h"
#include <fcntl.h>
#include <sys/stat.h>

static int file;

static void *writes(void *unused)
{
    assert(write(file, "a", 1) == 1);
    assert(write(file, "b", 1) == 1);
    return unused;
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/exit_writerXXXXXX";
    struct stat stat;

    if (argc < 3)
        return 2;
    file = mkstemp(name);
    assert(file >= 0);
    unlink(name);
    if (fork() == 0) {
        pthread_t t = go(writes, NULL);
        if (strcmp(argv[1], "fixed") == 0)
            join(t);
        if (strcmp(argv[1], "ends") == 0)
            pthread_exit(NULL);
        if (strcmp(argv[1], "returns") == 0)
            return 0;
        _exit(0);
    }
    assert(wait(NULL) > 0);
    MUST(fstat(file, &stat));
    assert(stat.st_size != atoi(argv[2]));
    return 0;
}
