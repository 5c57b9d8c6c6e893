/*
 * A stop and SIGCONT, without a handler, make some waiting calls fail with EINTR (signal(7)).  stop_eintr CALL [WORD]
 *   CALL     semop semtimedop epoll sigwait recv accept connect send: these may fail
 *            read poll sleep sem msg waitall: these go on; of waitall a part may come
 *   WORD     careless: the caller thinks that it cannot fail; never: it asserts that it does not
 */

#include "t.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static const char *call;
static int careless, set, epoll, event, p[2], pair[2], listener, queue;
static sem_t *sem;
static sigset_t usr1;
static struct sockaddr_un name;
static socklen_t name_len = sizeof name;

static int is(const char *word)
{
    return strcmp(call, word) == 0;
}

static void make(void)
{
    struct epoll_event e = {.events = EPOLLIN};
    struct timeval second = {1, 0};

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &usr1, NULL));
    if (is("semop") || is("semtimedop"))
        set = new_sems(1, 0);
    if (is("epoll")) {
        epoll = epoll_create1(0);
        event = eventfd(0, 0);
        MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e));
    }
    if (is("msg"))
        queue = msgget(IPC_PRIVATE, 0600);
    if (is("sem")) {
        sem = shared(sizeof *sem);
        MUST(sem_init(sem, 1, 0));
    }
    MUST(pipe(p));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    if (is("recv"))
        MUST(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second));
    if (is("accept") || is("connect")) {
        name.sun_family = AF_UNIX;
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        MUST(bind(listener, (struct sockaddr *)&name, sizeof(sa_family_t)));
        MUST(getsockname(listener, (struct sockaddr *)&name, &name_len));
        MUST(listen(listener, 0));
        MUST(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second));
    }
}

static int connection(void)
{
    struct timeval second = {1, 0};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);

    MUST(setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second));
    int result = connect(s, (struct sockaddr *)&name, name_len);
    return result < 0 ? result : s;
}

/* The call that waits; 0: it has what it waited for. */
static int waits(void)
{
    struct sembuf down = {0, -1, 0};
    struct timespec second = {1, 0};
    struct epoll_event e;
    struct pollfd f = {p[0], POLLIN, 0};
    struct { long type; char text[1]; } m;
    char byte;
    int n;

    if (is("semop")) return semop(set, &down, 1);
    if (is("semtimedop")) return semtimedop(set, &down, 1, &second);
    if (is("epoll")) return (n = epoll_wait(epoll, &e, 1, -1)) == 1 ? 0 : n;
    if (is("sigwait")) return (n = sigtimedwait(&usr1, NULL, &second)) == SIGUSR1 ? 0 : n;
    if (is("recv")) return (n = recv(pair[0], &byte, 1, 0)) == 1 ? 0 : n;
    if (is("accept")) return (n = accept(listener, NULL, NULL)) >= 0 ? 0 : n;
    if (is("connect")) return (n = connection()) >= 0 ? 0 : n;
    if (is("read")) return (n = read(p[0], &byte, 1)) == 1 ? 0 : n;
    if (is("poll")) return (n = poll(&f, 1, 1000)) == 1 ? 0 : n;
    if (is("sleep")) return nanosleep(&second, NULL);
    if (is("sem")) return sem_wait(sem);
    if (is("msg")) return (n = msgrcv(queue, &m, 1, 0, 0)) == 1 ? 0 : n;
    abort();
}

/* Lets the call go on. */
static void gives(pid_t pid)
{
    uint64_t one = 1;
    struct { long type; char text[1]; } m = {1, "x"};

    if (is("semop") || is("semtimedop")) sem_change(set, 0, 1);
    if (is("epoll")) assert(write(event, &one, sizeof one) == sizeof one);
    if (is("sigwait")) MUST(kill(pid, SIGUSR1));
    if (is("recv")) assert(write(pair[1], "x", 1) == 1);
    if (is("accept")) assert(connection() >= 0);
    if (is("connect")) assert(accept(listener, NULL, NULL) >= 0);
    if (is("read") || is("poll")) assert(write(p[1], "x", 1) == 1);
    if (is("sem")) MUST(sem_post(sem));
    if (is("msg")) MUST(msgsnd(queue, &m, 1, 0));
}

static void wait_for_it(void)
{
    int n;

    while ((n = waits()) < 0) {
        /* Timeouts are no matter here. */
        if (errno == EAGAIN)
            _exit(0);
        assert(errno == EINTR && !careless);
    }
    assert(n == 0);
}

/* MSG_WAITALL: what has come when the stop does may be all that it gives. */
static void wait_for_all(void)
{
    char text[4];
    int n = recv(pair[0], text, 4, MSG_WAITALL);

    assert(n == 4 || n == 2 || (n == -1 && errno == EINTR));
    assert(!careless || n == 4);
}

int main(int argc, char **argv)
{
    int status;

    call = argc > 1 ? argv[1] : "";
    careless = argc > 2;
    make();
    if (is("connect"))
        assert(connection() >= 0); /* The queue of connections is full. */
    pid_t pid = fork_run(is("waitall") ? wait_for_all : wait_for_it);
    if (is("waitall"))
        assert(write(pair[1], "ab", 2) == 2);
    MUST(kill(pid, SIGSTOP));
    assert(waitpid(pid, &status, WUNTRACED) == pid);
    if (!WIFSTOPPED(status)) {
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return 0;
    }
    MUST(kill(pid, SIGCONT));
    if (is("waitall"))
        assert(write(pair[1], "cd", 2) == 2);
    else
        gives(pid);
    assert(reap(pid) == 0);
    if (set)
        semctl(set, 0, IPC_RMID);
    if (queue)
        msgctl(queue, IPC_RMID, NULL);
    return 0;
}
