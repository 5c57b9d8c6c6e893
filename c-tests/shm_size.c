/* Shared memory is mapped before the one who makes it has given it a size: SIGBUS. "fixed": the other one looks at the size first. "memfd": threads of
   one process. */
#define _GNU_SOURCE
#include "t.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int file;

static void use(int fixed)
{
    struct stat s = { .st_size = 0 };
    /* Nothing but the mapping is a place to switch otherwise. */
    while (fixed && s.st_size == 0) {
        MUST(fstat(file, &s));
        sched_yield();
    }
    int *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert(memory != MAP_FAILED);
    *memory = 1;
}

static void *user(void *fixed)
{
    use(fixed != NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    int fixed = argc > 1 && !strcmp(argv[1], "fixed"), memfd = argc > 1 && !strncmp(argv[1], "memfd", 5);
    if (memfd) {
        pthread_t thread;
        file = memfd_create("shm_size", 0);
        pthread_create(&thread, NULL, user, strcmp(argv[1], "memfd") ? &file : NULL);
        MUST(ftruncate(file, 4096));
        pthread_join(thread, NULL);
        return 0;
    }
    char name[32];
    snprintf(name, sizeof name, "/shm_size%d", getpid());
    pid_t child = fork();
    if (child == 0) {
        file = shm_open(name, O_RDWR, 0);
        if (file >= 0)
            use(fixed);
        _exit(0);
    }
    file = shm_open(name, O_CREAT | O_RDWR, 0600);
    MUST(ftruncate(file, 4096));
    assert(waitpid(child, NULL, 0) == child);
    MUST(shm_unlink(name));
    return 0;
}
