/* POSIX timers: by signal, with what a handler is told, and by a thread of glibc's (SIGEV_THREAD). */
#include <semaphore.h>
#include <signal.h>

#include "t.h"

static sem_t fired;
static volatile sig_atomic_t told;

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (signal != SIGRTMIN || info->si_code != SI_TIMER || info->si_value.sival_int != 7)
        abort();
    told++;
}

static void notify(union sigval value)
{
    if (value.sival_int != 8)
        abort();
    MUST(sem_post(&fired));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 7};
    struct itimerspec once = {{0, 0}, {1, 0}}, now;
    timer_t timer;

    sigaction(SIGRTMIN, &action, NULL);
    sem_init(&fired, 0, 0);
    if (arg_is(argc, argv, "thread")) {
        event.sigev_notify = SIGEV_THREAD;
        event.sigev_notify_function = notify;
        event.sigev_value.sival_int = 8;
    }
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer));
    MUST(timer_settime(timer, 0, &once, NULL));
    MUST(timer_gettime(timer, &now));
    if (now.it_value.tv_sec > 1 || now.it_interval.tv_sec != 0)
        abort();
    if (arg_is(argc, argv, "thread"))
        MUST(sem_wait(&fired));
    else if (pause() != -1 || errno != EINTR || told != 1 || timer_getoverrun(timer) != 0)
        abort();
    MUST(timer_delete(timer));
    return 0;
}
