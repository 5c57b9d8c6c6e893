/*
 * Which calls --inject eintr strikes (signal(7)): those that wait, where they would have to wait.  inject_eintr CALL MODE
 *   waits   the call has to wait in some order, and fails with EINTR there: the program takes that for a failure
 *   there   what the call asks for is there already: it cannot be interrupted
 */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>

static int there, fd[2], set, queue, listener;
static sem_t sem;
static mqd_t mq;
static const char *call;
static const char file[] = "inject_eintr.file";
static sigset_t usr1;
struct text { long type; char text[8]; };

static int is(const char *name)
{
    return strcmp(call, name) == 0;
}

static void locked(int command)
{
    struct flock part = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    assert(fcntl(fd[0], command, &part) == 0);
}

/* What the other one waits for. */
static void give(void)
{
    struct text message = { 1, "m" };
    struct sembuf up = { 0, 1, 0 };

    if (is("sem")) sem_post(&sem);
    else if (is("semop")) semop(set, &up, 1);
    else if (is("msgrcv")) msgsnd(queue, &message, 1, 0);
    else if (is("mq")) mq_send(mq, "m", 1, 0);
    else if (is("eventfd")) eventfd_write(fd[0], 1);
    else if (is("sigwait")) kill(getpid(), SIGUSR1);
    else if (is("accept")) {
        struct sockaddr_un a = { AF_UNIX, "inject_eintr.socket" };
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        assert(connect(s, (void *)&a, sizeof a) == 0);
    } else assert(write(fd[1], "x", 1) == 1);
}

static long ask(void)
{
    char byte[64];
    struct text message;
    struct sembuf down = { 0, -1, 0 };
    struct pollfd one = { fd[0], POLLIN, 0 };
    struct epoll_event event = { .events = EPOLLIN };
    eventfd_t value;
    fd_set set_of_fds;

    if (is("read")) return read(fd[0], byte, 1);
    if (is("recv")) return recv(fd[0], byte, 1, 0);
    if (is("poll")) return poll(&one, 1, -1);
    if (is("select")) {
        FD_ZERO(&set_of_fds);
        FD_SET(fd[0], &set_of_fds);
        return select(fd[0] + 1, &set_of_fds, NULL, NULL, NULL);
    }
    if (is("epoll")) {
        int epoll = epoll_create1(0);
        assert(epoll_ctl(epoll, EPOLL_CTL_ADD, fd[0], &event) == 0);
        return epoll_wait(epoll, &event, 1, -1);
    }
    if (is("eventfd")) return eventfd_read(fd[0], &value);
    if (is("sem")) return sem_wait(&sem);
    if (is("semop")) return semop(set, &down, 1);
    if (is("msgrcv")) return msgrcv(queue, &message, 8, 0, 0);
    if (is("mq")) return mq_receive(mq, byte, sizeof byte, NULL);
    if (is("sigwait")) return sigwaitinfo(&usr1, NULL);
    if (is("accept")) return accept(listener, NULL, NULL);
    return -1;
}

static void *giver(void *arg)
{
    if (!there)
        give();
    return arg;
}

static void prepare(void)
{
    struct sockaddr_un a = { AF_UNIX, "inject_eintr.socket" };
    struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8 };

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    if (is("recv")) {
        MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    } else if (is("eventfd")) {
        fd[0] = eventfd(0, 0);
    } else {
        MUST(pipe(fd));
    }
    sem_init(&sem, 0, 0);
    set = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    if (is("mq")) {
        mq_unlink("/inject-eintr");
        mq = mq_open("/inject-eintr", O_CREAT | O_RDWR, 0600, &attr);
        mq_unlink("/inject-eintr");
    }
    if (is("accept")) {
        unlink(a.sun_path);
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        MUST(bind(listener, (void *)&a, sizeof a));
        MUST(listen(listener, 1));
    }
}

/* Calls that wait for a process, and sleeps, which are never there. */
static void others(void)
{
    struct timespec short_time = { 0, 1000000 };
    int status;

    if (is("nanosleep")) {
        assert(nanosleep(&short_time, NULL) == 0);
        return;
    }
    if (is("flock") || is("setlkw")) {
        close(open(file, O_CREAT | O_RDWR, 0600));
    }
    pid_t pid = fork();
    if (pid == 0) {
        fd[0] = open(file, O_RDWR);
        if (is("flock")) flock(fd[0], LOCK_EX);
        if (is("setlkw")) locked(F_SETLK);
        _exit(0);
    }
    if (is("flock") || is("setlkw")) {
        fd[0] = open(file, O_RDWR);
        while (there && waitpid(pid, NULL, 0) < 0)
            ;
        if (is("flock")) assert(flock(fd[0], LOCK_EX) == 0);
        else locked(F_SETLKW);
        unlink(file);
    } else {
        if (there) {
            siginfo_t info;
            while (waitid(P_PID, pid, &info, WEXITED | WNOWAIT) < 0)
                ;
        }
        if (is("waitid")) {
            siginfo_t info;
            assert(waitid(P_PID, pid, &info, WEXITED) == 0);
        } else {
            assert(waitpid(pid, &status, 0) == pid);
        }
    }
}

int main(int argc, char **argv)
{
    pthread_t t;

    if (argc < 3)
        return 2;
    call = argv[1];
    there = strcmp(argv[2], "there") == 0;
    if (is("nanosleep") || is("waitpid") || is("waitid") || is("flock") || is("setlkw")) {
        others();
        return 0;
    }
    prepare();
    if (there)
        give();
    t = go(giver, NULL);
    assert(ask() >= 0);
    join(t);
    semctl(set, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
    unlink("inject_eintr.socket");
    return 0;
}
