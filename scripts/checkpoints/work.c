/* work MILLISECONDS PAGES THREADS ROUNDS: computes for so long before there is a second thread, then THREADS threads each lock, write to PAGES pages of
 * their own, count and unlock, ROUNDS times. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long counted;
static int pages, rounds;
static char *memory;

static void *thread(void *number) {
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&lock);
        counted++;
        for (int page = 0; page < pages; page++)
            memory[((long)number * pages + page) * 4096L] = (char)(round + 1);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    pages = atoi(argv[2]);
    rounds = atoi(argv[4]);
    int threads = atoi(argv[3]);
    memory = malloc((size_t)threads * pages * 4096 + 4096);
    memset(memory, 1, (size_t)threads * pages * 4096 + 4096);
    /* Some 1 ns a round: the clock of the program is virtual. */
    for (unsigned long left = 1000000ul * atoi(argv[1]); left > 0; left--)
        __asm__ volatile("");
    pthread_t ids[64];
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, thread, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return 0;
}
