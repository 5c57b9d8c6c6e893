/* A state machine of 30 states that goes round a hundred times; it fails where it is asked to stop in its fourth state. */
#include <assert.h>
#include <pthread.h>

enum { STATES = 30 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int state, stops, rounds;

static void *turn(void *arg)
{
    (void)arg;
    for (rounds = 0; rounds < 3000; rounds++) {
        pthread_mutex_lock(&lock);
        if (stops && state == 0) {
            pthread_mutex_unlock(&lock);
            return NULL;
        }
#ifndef FIXED
        assert(!(stops && state == 3));
#endif
        state = (state + 1) % STATES;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *stop(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    stops = 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, turn, NULL);
    pthread_create(&b, NULL, stop, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
