// Memory that threads use without an order, and that is given back to the kernel while vsrun still has to do with it.
//   gone      the first thread writes there, gives it back, and goes on
//   update    the same with an atomic update that changes nothing
//   waits     a thread waits for a word that another thread gives back: it crashes, as natively
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile long *shared, *other;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *set(void *argument) {
    *shared = 1;
    *other = 1;
    return argument;
}

static void *await(void *argument) {
    while (!*shared) {}
    return argument;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "gone";
    shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    int waits = !strcmp(way, "waits");
    pthread_create(&thread, 0, waits ? await : set, 0);
    if (waits) {
        *other = *shared;
        munmap((void *)shared, 4096);
        pthread_join(thread, 0);
        return 0;
    }
    *shared = 2;
    *other = 2;
    pthread_join(thread, 0);
    long seen = *shared;
    assert(seen == 1 || seen == 2);
    if (!strcmp(way, "update")) {
        __atomic_fetch_or(shared, 0, __ATOMIC_SEQ_CST);
    } else {
        *shared = 3;
    }
    munmap((void *)shared, 4096);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    *other = 4;
    return 0;
}
