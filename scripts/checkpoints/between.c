/* between MILLISECONDS MICROSECONDS THREADS ROUNDS READS: computes for so many milliseconds before there is a second thread, then THREADS threads each take and
 * give back a lock for reading READS times, and ROUNDS times compute for so many microseconds, lock, count and unlock. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static volatile unsigned long counted;
static unsigned long between;
static int rounds, reads;

/* Some 0.4 ns a round: the clock of the program is virtual. */
static void compute(unsigned long nanoseconds) {
    for (unsigned long left = nanoseconds * 5 / 2; left > 0; left--)
        __asm__ volatile("");
}

static void *thread(void *unused) {
    for (int read = 0; read < reads; read++) {
        pthread_rwlock_rdlock(&shared);
        pthread_rwlock_unlock(&shared);
    }
    for (int round = 0; round < rounds; round++) {
        compute(between);
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    between = 1000ul * atol(argv[2]);
    int threads = atoi(argv[3]);
    rounds = atoi(argv[4]);
    reads = atoi(argv[5]);
    compute(1000000ul * atol(argv[1]));
    pthread_t ids[64];
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, thread, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return 0;
}
