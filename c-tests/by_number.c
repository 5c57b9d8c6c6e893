/*
 * A process or thread is named by its number while somebody waits for its end, which makes the number nobody's.  by_number VARIANT
 *   group      getpgid of a sister
 *   nice       setpriority of a sister
 *   move       setpgid of a child that leaves nothing to wait for
 *   thread     sched_getscheduler of a thread that ends
 *   kept       getpgid of an own child that has ended and has not been waited for
 */
#include "t.h"
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static sem_t told;
static pid_t tid;

static void *ends(void *arg)
{
    tid = syscall(SYS_gettid);
    sem_post(&told);
    return arg;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[1], "thread") == 0) {
        sem_init(&told, 0, 0);
        pthread_t other = go(ends, NULL);
        sem_wait(&told);
        assert(sched_getscheduler(tid) == SCHED_OTHER);
        pthread_join(other, NULL);
        return 0;
    }
    int move = strcmp(argv[1], "move") == 0, kept = strcmp(argv[1], "kept") == 0;
    if (move) signal(SIGCHLD, SIG_IGN);
    pid_t sister = fork();
    if (sister == 0) _exit(0);
    if (move || kept) {
        assert(move ? setpgid(sister, 0) == 0 || errno == EACCES : getpgid(sister) == getpgrp());
        waitpid(sister, NULL, 0);
        return 0;
    }
    pid_t pid = fork();
    if (pid == 0) {
        if (strcmp(argv[1], "nice") == 0)
            _exit(setpriority(PRIO_PROCESS, sister, 5) != 0);
        _exit(getpgid(sister) < 0);
    }
    int status;
    assert(waitpid(sister, NULL, 0) == sister);
    assert(waitpid(pid, &status, 0) == pid);
    assert(status == 0);
    return 0;
}
