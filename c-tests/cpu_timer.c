/* Timers of processor time are accepted and never expire, which the report says: nothing is complete then.

   none      they are made, asked and deleted, but not armed
   thread    timer_create on the clock of a thread, armed
   prof      setitimer(ITIMER_PROF) */
#include "../shim/include/vs.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static void never(int signal)
{
    (void)signal;
    VS_assert(0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "none";
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec in = {.it_value = {2, 5}}, left;
    struct itimerval value = {.it_value = {1, 7}}, old;
    clockid_t clock;
    timer_t timer;
    signal(SIGUSR1, never);
    signal(SIGPROF, never);
    VS_assert(pthread_getcpuclockid(pthread_self(), &clock) == 0);
    VS_assert(timer_create(clock, &event, &timer) == 0);
    VS_assert(timer_gettime(timer, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);
    if (!strcmp(what, "thread")) {
        VS_assert(timer_settime(timer, 0, &in, NULL) == 0);
        VS_assert(timer_gettime(timer, &left) == 0 && left.it_value.tv_sec == 2);
    }
    if (!strcmp(what, "prof")) {
        VS_assert(setitimer(ITIMER_PROF, &value, NULL) == 0);
        VS_assert(getitimer(ITIMER_REAL, &old) == 0 && old.it_value.tv_sec == 0 && old.it_value.tv_usec == 0);
        VS_assert(getitimer(ITIMER_PROF, &old) == 0 && old.it_value.tv_sec == 1);
    }
    nanosleep(&(struct timespec){.tv_sec = 10}, NULL);
    VS_assert(timer_delete(timer) == 0);
    return 0;
}
