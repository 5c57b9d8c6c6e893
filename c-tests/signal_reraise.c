/* A process that ends by a signal. The first one is said to have crashed if it sends that to itself out of nowhere, but not
   if it had been sent the signal, cleans up and then says by the same signal what ended it.

   crash     SIGTERM with its default action
   reraise   a handler that restores the default action and raises the signal again
   wait      the same with sigwait */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void again(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "crash";
    if (!strcmp(what, "reraise"))
        signal(SIGTERM, again);
    if (!strcmp(what, "wait")) {
        sigset_t set;
        int number;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), SIGTERM);
        sigwait(&set, &number);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    kill(getpid(), SIGTERM);
    return 0;
}
