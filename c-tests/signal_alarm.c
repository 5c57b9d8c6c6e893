/* alarm as a timeout: the handler interrupts the wait, which nobody else will end. Fixed: EINTR is taken for the timeout
 * that it is; buggy: SA_RESTART makes the wait go on for ever. Also: what is left of a sleep, and of an alarm. */
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

#include "t.h"

static volatile sig_atomic_t rang;
static sem_t sem;

static void handler(int signal)
{
    (void)signal;
    rang++;
}

static void *other(void *arg)
{
    (void)arg;
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    struct itimerval every = {{0, 100000}, {0, 100000}}, off = {{0, 0}, {0, 0}}, was;
    struct timespec left = {0, 0}, ten = {10, 0};

    if (!arg_is(argc, argv, "fixed"))
        action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    sem_init(&sem, 0, 0);
    pthread_t t = go(other, NULL);
    if (alarm(3) != 0)
        abort();
    /* Never restarted, whatever the handler's flags. */
    if (nanosleep(&ten, &left) != -1 || errno != EINTR || rang != 1 || left.tv_sec != 6)
        abort();
    alarm(20);
    if (alarm(2) != 20)
        abort();
    if (sem_wait(&sem) != -1 || errno != EINTR || rang != 2)
        abort();
    MUST(setitimer(ITIMER_REAL, &every, NULL));
    while (rang < 5)
        pause();
    MUST(setitimer(ITIMER_REAL, &off, &was));
    if (was.it_interval.tv_usec != 100000 || was.it_value.tv_usec > 100000)
        abort();
    join(t);
    return 0;
}
