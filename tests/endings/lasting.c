/* Programs that go on for long: lasting quiet | prints | declares | accepts | threads | ends [ROUNDS] (no end unless ROUNDS is given).
   A round is some steps of two threads. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../shim/include/vs.h"

enum { STEPS = 20 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun;
static struct sockaddr_in address;
static long rounds;

static int goes_on(long n) {
    return rounds == 0 || n < rounds;
}

static void steps(void) {
    for (int n = 0; n < STEPS; n++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
}

static void *works(void *arg) {
    for (long n = 0; goes_on(n); n++)
        steps();
    return arg;
}

static void *connects(void *arg) {
    pthread_barrier_wait(&begun);
    for (long n = 0; goes_on(n); n++) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(s, (struct sockaddr *)&address, sizeof address))
            _exit(7);
        close(s);
    }
    return arg;
}

static void *nothing(void *arg) {
    return arg;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "quiet";
    socklen_t length = sizeof address;
    int listener = -1;
    pthread_t other, more;
    rounds = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(how, "accepts")) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 5) ||
            getsockname(listener, (struct sockaddr *)&address, &length))
            return 8;
    }
    pthread_barrier_init(&begun, 0, 2);
    pthread_create(&other, 0, listener < 0 ? works : connects, 0);
    if (listener >= 0)
        pthread_barrier_wait(&begun);
    if (!strcmp(how, "quiet") && write(1, "begun\n", 6) != 6)
        return 9;
    for (long n = 0; goes_on(n); n++) {
        steps();
        if (!strcmp(how, "prints") && write(1, ".", 1) != 1)
            return 9;
        if (!strcmp(how, "declares"))
            VS_progress();
        if (listener >= 0)
            close(accept(listener, 0, 0));
        if (!strcmp(how, "threads")) {
            pthread_create(&more, 0, nothing, 0);
            pthread_join(more, 0);
        }
    }
    pthread_join(other, 0);
    return 0;
}
