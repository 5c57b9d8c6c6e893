/*
 * A fork copies descriptors, directory, umask and actions before it copies the memory: a thread beside it may open a file and say so in
 * between. The child then has the number and not the file. Natively 8 of 300 runs. JOINED: the thread is over before the fork.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int opened = -1;

static void handle(int signal) { (void)signal; }

static void *work(void *arg)
{
#ifdef STATE
    signal(SIGUSR1, handle);
    int fd = 1;
#else
    int fd = dup(1);
#endif
    pthread_mutex_lock(&lock);
    opened = fd;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void)
{
    pthread_t thread;
    int status;

    pthread_create(&thread, NULL, work, NULL);
#ifdef JOINED
    pthread_join(thread, NULL);
#endif
    pid_t child = fork();
    if (child == 0) {
        if (pthread_mutex_trylock(&lock) != 0 || opened < 0)
            _exit(0);
#ifdef STATE
        struct sigaction action;
        sigaction(SIGUSR1, NULL, &action);
        _exit(action.sa_handler != handle);
#else
        _exit(fcntl(opened, F_GETFD) < 0);
#endif
    }
    waitpid(child, &status, 0);
#ifndef JOINED
    pthread_join(thread, NULL);
#endif
    assert(status == 0);
    return 0;
}
