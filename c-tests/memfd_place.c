/* The kernel has no lock on the place of a memfd: of two threads that write by it both may begin at the same one, which is not explored, but
   said where another thread stands at such a call. "locked": a mutex keeps them apart. */
#define _GNU_SOURCE
#include "t.h"
#include <sys/mman.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int file, locked;

static void *writes(void *unused)
{
    if (locked)
        pthread_mutex_lock(&m);
    assert(write(file, "x", 1) == 1);
    if (locked)
        pthread_mutex_unlock(&m);
    return unused;
}

int main(int argc, char **argv)
{
    locked = argc > 1 && strcmp(argv[1], "locked") == 0;
    file = memfd_create("place", 0);
    pthread_t t = go(writes, NULL);
    writes(NULL);
    join(t);
    assert(locked || argc > 1 || lseek(file, 0, SEEK_CUR) == 2);
    if (locked)
        assert(lseek(file, 0, SEEK_CUR) == 2);
    return 0;
}
