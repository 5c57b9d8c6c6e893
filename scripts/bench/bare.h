/*
 * What an execution costs at the least: fork, create threads (THREADS), join them, exit, wait.
 * The same threads, run once, are what vsrun explores.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef THREADS
#define THREADS 4
#endif

static void bare_once(void *(*body)(void *))
{
    pthread_t t[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, body, (void *)i) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

/* A child that has deadlocked (the philosophers may) is killed when a second has passed. */
static volatile sig_atomic_t bare_child, bare_seen;

static void bare_tick(int unused)
{
    (void)unused;
    if (bare_child != 0 && bare_child == bare_seen)
        kill((pid_t)bare_child, SIGKILL);
    bare_seen = bare_child;
}

static double bare_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int bare_main(int argc, char **argv, void *(*body)(void *))
{
    int n = argc > 1 ? atoi(argv[1]) : 0;
    struct sigaction action = { .sa_handler = bare_tick, .sa_flags = SA_RESTART };
    struct itimerval second = { { 1, 0 }, { 1, 0 } };
    double begin;

    if (n == 0) {
        bare_once(body);
        return 0;
    }
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
    begin = bare_seconds();
    for (int i = 0; i < n; i++) {
        pid_t child = fork();

        if (child < 0)
            abort();
        if (child == 0) {
            bare_once(body);
            _exit(0);
        }
        bare_child = child;
        while (waitpid(child, NULL, 0) != child)
            ;
        bare_child = 0;
    }
    printf("%.6f\n", bare_seconds() - begin);
    return 0;
}
