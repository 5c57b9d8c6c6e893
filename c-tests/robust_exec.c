/* A process that holds a robust mutex gives it up when it replaces its program, and until then it is taken: the argument says what its parent
 * is not to find ("busy", "dead", "free"). */
#include "t.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    MUST(argc != 2 || lock == MAP_FAILED);
    MUST(pthread_mutexattr_init(&attr));
    MUST(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MUST(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutex_init(lock, &attr));
    pid_t child = fork();
    if (child == 0) {
        if (pthread_mutex_trylock(lock) == 0)
            execl("/bin/true", "true", NULL);
        _exit(0);
    }
    int found = pthread_mutex_trylock(lock);
    assert(found != (strcmp(argv[1], "busy") == 0 ? EBUSY : strcmp(argv[1], "dead") == 0 ? EOWNERDEAD : 0));
    MUST(waitpid(child, &status, 0) != child);
    return 0;
}
