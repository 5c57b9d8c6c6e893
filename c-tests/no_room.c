// More threads (or, with a second argument, timers, locks, descriptors) than vsrun can hold, in some executions: these are cut, the others are
// explored, and nothing is complete. "buggy": in another execution an assertion fails. "always": each execution is cut.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "../shim/include/vs.h"

static void *nothing(void *argument) {
    return argument;
}

static void too_many(const char *what) {
    for (int i = 0; i < 1000000; i++) {
        pthread_t thread;
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_NONE};
        int pair[2];
        if (!strcmp(what, "timers")) {
            if (timer_create(CLOCK_MONOTONIC, &event, &timer)) return;
        } else if (!strcmp(what, "locks")) {
            pthread_mutex_lock(calloc(1, sizeof(pthread_mutex_t)));
        } else if (!strcmp(what, "sockets")) {
            // Each is under way in a message to the next, so that numbers are free again.
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return;
        } else {
            if (pthread_create(&thread, 0, nothing, 0)) return;
            pthread_join(thread, 0);
        }
    }
}

int main(int argc, char **argv) {
    int buggy = argc > 1 && !strcmp(argv[1], "buggy"), always = argc > 1 && !strcmp(argv[1], "always");
    int way = VS_toss(2);
    if (way == 1 || always) too_many(argc > 2 ? argv[2] : "threads");
    if (way == 2) VS_assert(!buggy);
    return 0;
}
