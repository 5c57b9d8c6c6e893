/* Who asks for the signal of a timer without waiting (sigtimedwait) may find that it has come or not; who has slept for longer than the timer
 * takes finds it. */
#include "t.h"
#include <signal.h>

int main(int argc, char **argv)
{
    struct timespec none = {0, 0}, long_time = {2, 0};
    sigset_t set;
    int found;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    MUST(pthread_sigmask(SIG_BLOCK, &set, NULL));
    alarm(1);
    if (arg_is(argc, argv, "slept")) MUST(nanosleep(&long_time, NULL));
    found = sigtimedwait(&set, NULL, &none);
    if (arg_is(argc, argv, "slept")) assert(found == SIGALRM);
    else if (arg_is(argc, argv, "come")) assert(found == -1);
    else if (arg_is(argc, argv, "not-yet")) assert(found == SIGALRM);
    else assert(found == SIGALRM || errno == EAGAIN);
    return 0;
}
