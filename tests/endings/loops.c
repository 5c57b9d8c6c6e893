/* Programs without an end, or with one that an unfair schedule does not come to: loops yields | cpu | locks | polls | calls */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int go;

static void *yields(void *arg) {
    for (;;)
        sched_yield();
    return arg;
}

static void *computes(void *arg) {
    for (volatile int n = 0;;)
        n++;
    return arg;
}

static void *locks(void *arg) {
    for (;;) {
        pthread_mutex_lock(&m);
        go++;
        pthread_mutex_unlock(&m);
    }
    return arg;
}

/* Each call is a trap, at which a traced process stops. */
static void *calls(void *arg) {
    for (;;) {
        pthread_mutex_lock(&m);
        for (int n = 0; n < 50; n++)
            syscall(SYS_getpid);
        pthread_mutex_unlock(&m);
    }
    return arg;
}

static void *sets(void *arg) {
    pthread_mutex_lock(&m);
    go = 1;
    pthread_mutex_unlock(&m);
    return arg;
}

/* It waits for `sets` with no yield and no sleep. */
static void *polls(void *arg) {
    for (int is_set = 0; !is_set;) {
        pthread_mutex_lock(&m);
        is_set = go;
        pthread_mutex_unlock(&m);
    }
    return arg;
}

/* What comes before main has no end, where that is asked for. */
__attribute__((constructor)) static void begins(void) {
    if (getenv("STUCK"))
        computes(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    void *(*first)(void *) = yields, *(*second)(void *) = yields;
    if (!strcmp(how, "cpu"))
        first = second = computes;
    if (!strcmp(how, "locks"))
        first = second = locks;
    if (!strcmp(how, "calls"))
        first = second = calls;
    if (!strcmp(how, "polls"))
        first = polls, second = sets;
    pthread_t t;
    pthread_create(&t, 0, second, 0);
    first(0);
    return pthread_join(t, 0);
}
