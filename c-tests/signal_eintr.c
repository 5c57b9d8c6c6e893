/* semop is interrupted by a handler, with SA_RESTART too; the buggy variant takes that for success. sem_wait restarts. */
#include <semaphore.h>
#include <signal.h>

#include "t.h"

static int set;
static sem_t *posted;

static void handler(int signal)
{
    (void)signal;
}

static void child(void)
{
    MUST(kill(getppid(), SIGUSR1));
    sem_change(set, 0, 1);
    MUST(sem_post(posted));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sembuf down = {0, -1, 0};
    int fixed = arg_is(argc, argv, "fixed"), result;

    sigaction(SIGUSR1, &action, NULL);
    set = new_sems(1, 0);
    posted = shared(sizeof *posted);
    MUST(sem_init(posted, 1, 0));
    pid_t pid = fork_run(child);
    do
        result = semop(set, &down, 1);
    while (fixed && result == -1 && errno == EINTR);
    if (result != 0)
        abort();
    MUST(sem_wait(posted));
    reap(pid);
    return 0;
}
