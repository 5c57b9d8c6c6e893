/* A handler that locks: SIGHUP asks for new settings while the main loop holds their lock. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct { pthread_mutex_t lock; int level; } settings = {PTHREAD_MUTEX_INITIALIZER, 1};

static void reload(int sig) {
    (void)sig;
    pthread_mutex_lock(&settings.lock);
    settings.level++;
    pthread_mutex_unlock(&settings.lock);
}

static void *operator(void *arg) {
    (void)arg;
    kill(getpid(), SIGHUP);
    return NULL;
}

int main(void) {
    signal(SIGHUP, reload);
    pthread_t op;
    pthread_create(&op, NULL, operator, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&settings.lock);
        settings.level += i;
        pthread_mutex_unlock(&settings.lock);
    }
    pthread_join(op, NULL);
    return 0;
}
