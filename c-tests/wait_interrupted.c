/* A wait for a child is interrupted by a signal that comes before the child has ended, however soon after that it ends: who signals and ends
 * at once, a third process that does so because of what the child did last, a timer. */
#include "t.h"
#include <signal.h>
#include <sys/time.h>

static void handler(int signal)
{
    (void)signal;
}

int main(int argc, char **argv)
{
    int restarts = arg_is(argc, argv, "restarts"), timer = arg_is(argc, argv, "timer") || arg_is(argc, argv, "late");
    struct sigaction act = {.sa_handler = handler, .sa_flags = restarts ? SA_RESTART : 0};
    struct itimerval soon = {.it_value = {0, 1}};
    sem_t *sem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t own = getpid(), child, other = 0;
    int result;
    MUST(sem_init(sem, 1, 0));
    MUST(sigaction(timer ? SIGALRM : SIGUSR1, &act, NULL));
    if (arg_is(argc, argv, "timer")) MUST(setitimer(ITIMER_REAL, &soon, NULL));
    child = fork();
    if (child == 0) {
        if (arg_is(argc, argv, "third")) sem_post(sem);
        else if (!timer) kill(own, SIGUSR1);
        _exit(3);
    }
    if (arg_is(argc, argv, "late")) MUST(setitimer(ITIMER_REAL, &soon, NULL));
    if (arg_is(argc, argv, "third") && (other = fork()) == 0) {
        while (sem_wait(sem) != 0) {}
        kill(own, SIGUSR1);
        _exit(4);
    }
    result = arg_is(argc, argv, "waitid") ? waitid(P_PID, child, &(siginfo_t){0}, WEXITED) : waitpid(child, NULL, 0);
    if (!arg_is(argc, argv, "fixed")) assert(result != -1);
    while (result < 0 && errno == EINTR) result = waitpid(child, NULL, 0);
    while (other && waitpid(other, NULL, 0) < 0) {}
    return 0;
}
