/* What an id or a descriptor stands for may be over: whether it is there is a question of who came first. "pidfd": a child signals
 * another one through its pidfd, which their parent may have waited for. "thread": signal 0 for a thread that may have ended; "joined":
 * that has. "tid": kill with its id. "exec": a thread becomes the program, and has the id of its process from then on. */
#include "t.h"
#include <signal.h>
#include <sys/syscall.h>

static sem_t said;
static pid_t tid;

static void *says(void *unused)
{
    tid = (pid_t)syscall(SYS_gettid);
    sem_post(&said);
    return unused;
}

/* Signals a process that may be over, or waited for; says which. */
static void signals(pid_t other)
{
    siginfo_t info;
    int fd = (int)syscall(SYS_pidfd_open, other, 0);
    if (fd < 0) {
        assert(errno == ESRCH);
        _exit(1);
    }
    assert(waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == -1 && errno == ECHILD);
    if (syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0)
        _exit(2);
    assert(errno == ESRCH);
    _exit(3);
}

static volatile sig_atomic_t caught;

static void notes(int number)
{
    caught = number;
}

static void *becomes(void *name)
{
    execl("/proc/self/exe", name, "raise", (char *)NULL);
    abort();
}

static void signals_itself(void)
{
    signal(SIGUSR1, notes);
    MUST(raise(SIGUSR1));
    assert(caught == SIGUSR1);
    MUST(kill(getpid(), 0));
    MUST((int)syscall(SYS_tkill, getpid(), 0));
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "pidfd")) {
        pid_t first = fork(), second;
        if (first == 0)
            _exit(4);
        second = fork();
        if (second == 0)
            signals(first);
        int left = waitpid(first, NULL, WNOHANG) == 0 ? 2 : 1, status, said = 0;
        while (left-- > 0)
            if (wait(&status) == second)
                said = WEXITSTATUS(status);
        if (argc > 2)
            assert(said != atoi(argv[2]));
        return 0;
    }
    if (arg_is(argc, argv, "raise")) {
        signals_itself();
        return 0;
    }
    if (arg_is(argc, argv, "exec")) {
        join(go(becomes, argv[0]));
        return 1;
    }
    MUST(sem_init(&said, 0, 0));
    pthread_t t = go(says, NULL);
    MUST(sem_wait(&said));
    if (arg_is(argc, argv, "joined"))
        join(t);
    if (arg_is(argc, argv, "tid"))
        assert(kill(tid, 0) == 0);
    else if (arg_is(argc, argv, "thread"))
        assert(syscall(SYS_tgkill, getpid(), tid, 0) == 0);
    else
        assert(syscall(SYS_tgkill, getpid(), tid, 0) == -1 && errno == ESRCH);
    if (!arg_is(argc, argv, "joined"))
        join(t);
    return 0;
}
