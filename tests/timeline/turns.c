/* Two threads that hand a lock to and fro so many times, and an assertion at the end. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int whose, rounds;

static void *play(void *self)
{
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&lock);
        while (whose != (int)(long)self)
            pthread_cond_wait(&turn, &lock);
        whose = !whose;
        pthread_cond_signal(&turn);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;
    rounds = argc > 1 ? atoi(argv[1]) : 3;
    pthread_create(&other, NULL, play, (void *)1);
    play(NULL);
    pthread_join(other, NULL);
    assert(rounds < 10);
    return 0;
}
