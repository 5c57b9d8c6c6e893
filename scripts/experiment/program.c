/* program ROUNDS MICROSECONDS PAGES THREADS PROCESSES: PROCESSES processes of THREADS threads together do ROUNDS rounds: compute for so many microseconds,
 * lock, write to pages of their own, count, unlock. Each of PAGES pages is written once in an execution. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
    pthread_mutex_t lock;
    volatile unsigned long counted;
} own = {PTHREAD_MUTEX_INITIALIZER, 0}, *shared = &own;
static long all_rounds, pages, workers, threads, process;
static unsigned long nanoseconds;
static char *memory;

/* Some 0.4 ns a round: the clock of the program is virtual. */
static void compute(void) {
    for (unsigned long left = nanoseconds * 5 / 2; left > 0; left--)
        __asm__ volatile("");
}

static long share(long all, long n, long of) { return all * n / of; }

static void *work(void *number) {
    long self = process * threads + (long)number;
    long rounds = share(all_rounds, self + 1, workers) - share(all_rounds, self, workers);
    long first = share(pages, self, workers), mine = share(pages, self + 1, workers) - first;
    for (long round = 0; round < rounds; round++) {
        compute();
        pthread_mutex_lock(&shared->lock);
        for (long page = share(mine, round, rounds); page < share(mine, round + 1, rounds); page++)
            memory[(first + page) * 4096]++;
        shared->counted++;
        pthread_mutex_unlock(&shared->lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    all_rounds = atol(argv[1]);
    nanoseconds = 1000ul * atol(argv[2]);
    pages = atol(argv[3]);
    threads = atol(argv[4]);
    long processes = atol(argv[5]);
    workers = threads * processes;
    memory = malloc(pages * 4096 + 4096);
    memset(memory, 1, pages * 4096 + 4096);
    if (processes > 1) {
        pthread_mutexattr_t attributes;
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
            return 2;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&shared->lock, &attributes);
    }
    for (long child = 1; child < processes; child++)
        if (fork() == 0) {
            process = child;
            break;
        }
    pthread_t ids[64];
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)i);
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    if (process == 0)
        while (wait(NULL) > 0)
            ;
    return 0;
}
