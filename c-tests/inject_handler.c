// A poll and a semop that an injected fault spares, while a signal handler does the same with something else in between: what
// they ask for is theirs.
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>

static int mine[2], handlers[2], set, sems;

static void handler(int signal) {
    (void)signal;
    if (sems) {
        struct sembuf add = {1, 1, 0};
        semop(set, &add, 1);
    } else {
        struct pollfd asked = {handlers[0], POLLIN, 0};
        poll(&asked, 1, 0);
    }
}

static void *other(void *thread) {
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    if (sems) {
        struct sembuf add = {0, 1, 0};
        semop(set, &add, 1);
    } else {
        while (write(mine[1], "x", 1) != 1)
            ;
    }
    return NULL;
}

int main(int argc, char **argv) {
    sems = argc > 1 && strcmp(argv[1], "semop") == 0;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    set = semget(IPC_PRIVATE, 2, 0600);
    if (pipe(mine) != 0 || pipe(handlers) != 0)
        return 2;
    pthread_t self = pthread_self(), thread;
    pthread_create(&thread, NULL, other, &self);
    int n;
    if (sems) {
        struct sembuf take = {0, -1, 0};
        do
            n = semop(set, &take, 1);
        while (n < 0 && errno == EINTR);
        assert(n == 0 && semctl(set, 0, GETVAL) == 0);
    } else {
        struct pollfd asked = {mine[0], POLLIN, 0};
        do
            n = poll(&asked, 1, -1);
        while (n < 0 && errno == EINTR);
        assert(n == 1 && asked.revents == POLLIN);
    }
    pthread_join(thread, NULL);
    return 0;
}
