/* Two threads take two locks, in different order: FIXED, in the same; MORE, with another lock in between and all variables elsewhere. */
#include <pthread.h>

#ifdef MORE
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int lines[1000];
#endif
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int moved;

static void say(void) {
#ifdef MORE
    pthread_mutex_lock(&log_lock);
    lines[moved & 511]++;
    pthread_mutex_unlock(&log_lock);
#endif
}

static void move(pthread_mutex_t *from, pthread_mutex_t *to) {
    say();
    pthread_mutex_lock(from);
    say();
    pthread_mutex_lock(to);
    moved++;
    pthread_mutex_unlock(to);
    pthread_mutex_unlock(from);
}

static void *there(void *arg) {
    move(&first, &second);
    return arg;
}

static void *back(void *arg) {
#ifdef FIXED
    move(&first, &second);
#else
    move(&second, &first);
#endif
    return arg;
}

int main(void) {
    pthread_t t[2];
    pthread_create(&t[0], 0, there, 0);
    pthread_create(&t[1], 0, back, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    return 0;
}
