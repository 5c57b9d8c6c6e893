/*
 * Named semaphores, opened by name in both processes.  The child answers a request.
 * Buggy: it only looks whether there is one.  Fixed: it waits for it.
 */
#include "t.h"
#include <fcntl.h>

#define REQUEST "/vsrun-test-request"
#define ANSWER "/vsrun-test-answer"

static int fixed;

static sem_t *open_named(const char *name, int flags)
{
    sem_t *s = sem_open(name, flags, 0600, 0);

    if (s == SEM_FAILED)
        abort();
    return s;
}

static void child(void)
{
    sem_t *request = open_named(REQUEST, 0), *answer = open_named(ANSWER, 0);

    if (fixed)
        MUST(sem_wait(request));
    else if (sem_trywait(request) != 0)
        return;
    MUST(sem_post(answer));
}

int main(int argc, char **argv)
{
    sem_t *request, *answer;
    pid_t pid;

    fixed = arg_is(argc, argv, "fixed");
    sem_unlink(REQUEST);
    sem_unlink(ANSWER);
    request = open_named(REQUEST, O_CREAT | O_EXCL);
    answer = open_named(ANSWER, O_CREAT | O_EXCL);
    assert(sem_open(ANSWER, O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED && errno == EEXIST);
    pid = fork_run(child);
    MUST(sem_post(request));
    MUST(sem_wait(answer));
    assert(reap(pid) == 0);
    MUST(sem_close(request));
    MUST(sem_close(answer));
    MUST(sem_unlink(REQUEST));
    MUST(sem_unlink(ANSWER));
    return 0;
}
