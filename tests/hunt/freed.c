/* With AddressSanitizer: a block is used after it was freed, if the thread is late. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *block, gone;

static void *late(void *unused)
{
    pthread_mutex_lock(&lock);
    printf("%d\n", *block);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_t thread;
    block = calloc(1, sizeof *block);
    pthread_create(&thread, NULL, late, NULL);
    pthread_mutex_lock(&lock);
    free(block);
    gone = 1;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
