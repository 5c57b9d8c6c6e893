/* Two clerks that take two locks in different order; each says what it has done. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t till = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *what) {
    puts(what);
    fflush(stdout);
}

static void *deposit(void *unused) {
    pthread_mutex_lock(&ledger);
    pthread_mutex_lock(&till); /* deposit's second */
    say("deposited");
    pthread_mutex_unlock(&till);
    pthread_mutex_unlock(&ledger);
    return unused;
}

static void *withdraw(void *unused) {
    pthread_mutex_lock(&till);
    pthread_mutex_lock(&ledger); /* withdraw's second */
    say("withdrawn");
    pthread_mutex_unlock(&ledger);
    pthread_mutex_unlock(&till);
    return unused;
}

int main(void) {
    pthread_t clerks[2];
    say("open");
    pthread_create(&clerks[0], NULL, deposit, NULL);
    pthread_create(&clerks[1], NULL, withdraw, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(clerks[i], NULL);
    }
    say("closed");
    return 0;
}
