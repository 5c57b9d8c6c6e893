/* late STEPS: two threads take a lock so often, then they wait for each other. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static int steps;

static void works(void) {
    for (int i = 0; i < steps; i++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
}

static void *waits(void *arg) {
    works();
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&m);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t t;
    steps = argc > 1 ? atoi(argv[1]) : 0;
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&t, 0, waits, 0);
    works();
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&m);
    pthread_barrier_wait(&both);
    return pthread_join(t, 0);
}
