/* Whose children a wait is for: of several that are over a thread gets its own first, then those of the threads made after it, in a circle;
 * __WNOTHREAD leaves out those of other threads, until they are over, and __WCLONE all that tell of their end by SIGCHLD. A child that is
 * over is none to a wait that asks for stops only. */
#include "t.h"

static pid_t begin(int status)
{
    pid_t child = fork();
    siginfo_t info;
    if (child == 0) _exit(status);
    MUST(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    return child;
}

static void *own(void *arg)
{
    int status;
    (void)arg;
    begin(2);
    assert(wait(&status) > 0);
    return (void *)(intptr_t)WEXITSTATUS(status);
}

static void *makes(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)begin(2);
}

static void *others(void *arg)
{
    return (void *)(intptr_t)(waitpid(*(pid_t *)arg, NULL, __WNOTHREAD) < 0 ? errno : 0);
}

int main(int argc, char **argv)
{
    pid_t first = begin(1), all = -1;
    int status, buggy = arg_is(argc, argv, "buggy");
    void *result, *made;
    siginfo_t info;
    assert(waitpid(-1, NULL, __WCLONE) < 0 && errno == ECHILD);
    assert(waitpid(first, NULL, __WCLONE | WNOHANG) < 0 && errno == ECHILD);
    assert(waitid(P_ALL, 0, &info, WSTOPPED) < 0 && errno == ECHILD);
    MUST(pthread_join(go(others, &all), &result));
    assert((intptr_t)result == ECHILD);
    MUST(pthread_join(go(others, &first), &result));
    assert((intptr_t)result == ECHILD);
    MUST(pthread_join(go(own, NULL), &result));
    assert((intptr_t)result == (buggy ? 1 : 2));
    MUST(pthread_join(go(makes, NULL), &made));
    begin(3);
    assert(waitpid(-1, &status, __WNOTHREAD | __WALL) == first && WEXITSTATUS(status) == 1);
    /* Those of a thread that is over are the first thread's, behind its own. They may come to it later than join returns (kernel/exit.c,
     * do_exit): so this is not complete. */
    assert(waitpid(-1, &status, __WNOTHREAD) == (pid_t)(intptr_t)made && WEXITSTATUS(status) == 2);
    assert(waitpid(-1, &status, __WNOTHREAD) > 0 && WEXITSTATUS(status) == 3);
    assert(waitpid(-1, &status, __WNOTHREAD) < 0 && errno == ECHILD);
    return 0;
}
