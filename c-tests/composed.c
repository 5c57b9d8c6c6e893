// Composed transitions: sections under one lock commute where they have no memory in common that one of them writes.
// look: threads that read what a lock protects. add: threads that add to it. apart: each adds to its own.
// keeps: one passes through the lock and waits for ever, the other one keeps it and waits for ever: two deadlocks, of which one
// has both threads behind the lock. hidden: what comes before and after the sections is in no order.
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t never;
static volatile long shared, found[2], own[16], plain;
static const char *what;

static void section(long n) {
    pthread_mutex_lock(&lock);
    if (!strcmp(what, "look"))
        found[n] = shared;
    if (!strcmp(what, "add"))
        shared++;
    if (!strcmp(what, "apart"))
        own[8 * n]++;
    pthread_mutex_unlock(&lock);
}

static void *body(void *arg) {
    long n = (long)arg;
    if (!strcmp(what, "keeps")) {
        pthread_mutex_lock(&lock);
        if (n == 0)
            pthread_mutex_unlock(&lock);
        sem_wait(&never);
    } else if (!strcmp(what, "hidden")) {
        if (n == 0)
            plain = 1;
        section(n);
        if (n == 1)
            plain = 2;
    } else {
        section(n);
        section(n);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t t[2];
    what = argc > 1 ? argv[1] : "look";
    sem_init(&never, 0, 0);
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, body, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
