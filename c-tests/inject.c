/*
 * Faults of the environment (--inject).  inject VARIANT
 *   semop      an interrupted semop is taken for an acquired one
 *   semop-ok   it is tried again
 *   short      a short read is taken for a whole record
 *   short-ok   the rest is read
 *   spurious   a condition is waited for with if
 *   while      with while
 *   again      a reader that does not wait takes EAGAIN for the end
 *   fork       fork fails and nobody looks
 *   reset      a TCP connection is reset, which was thought impossible on this machine
 *   reset-ok   the client takes that for an answer
 */

#include "t.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, set, p[2];

static void up(int which)
{
    struct sembuf op = {which, 1, 0};
    MUST(semop(set, &op, 1));
}

static void *signaller(void *arg)
{
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return arg;
}

static void condition(int loop)
{
    pthread_t t = go(signaller, NULL);
    pthread_mutex_lock(&m);
    if (loop)
        while (!ready)
            pthread_cond_wait(&c, &m);
    else if (!ready)
        pthread_cond_wait(&c, &m);
    assert(ready);
    pthread_mutex_unlock(&m);
    pthread_join(t, NULL);
}

static void *poster(void *arg)
{
    up(1); /* A place to switch before what follows. */
    ready = 1;
    up(0);
    return arg;
}

static void semaphore(int again)
{
    struct sembuf down = {0, -1, 0};
    set = semget(IPC_PRIVATE, 2, 0600);
    pthread_t t = go(poster, NULL);
    while (semop(set, &down, 1) < 0 && again)
        assert(errno == EINTR);
    assert(ready);
    pthread_join(t, NULL);
    semctl(set, 0, IPC_RMID);
}

static void records(int whole)
{
    char record[8] = "1234567", got[8];
    MUST(pipe(p));
    if (fork() == 0) {
        for (size_t at = 0; at < sizeof record;) {
            ssize_t n = write(p[1], record + at, sizeof record - at);
            assert(n > 0);
            at += n;
        }
        _exit(0);
    }
    ssize_t n = 0;
    do {
        ssize_t more = read(p[0], got + n, sizeof got - n);
        assert(more > 0);
        n += more;
    } while (whole && n < (ssize_t)sizeof got);
    assert(n == sizeof got);
    wait(NULL);
}

static void not_waiting(void)
{
    char byte;
    MUST(pipe2(p, O_NONBLOCK));
    assert(write(p[1], "x", 1) == 1);
    assert(read(p[0], &byte, 1) == 1);
}

static void child(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, &status, 0);
    assert(status == 0);
}

static void *answerer(void *listener)
{
    int s = accept(*(int *)listener, NULL, NULL);
    char byte;

    if (s < 0)
        abort();
    if (read(s, &byte, 1) == 1 && write(s, &byte, 1) < 0)
        assert(errno == ECONNRESET || errno == EPIPE);
    close(s);
    return NULL;
}

static void connection(int expected)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);
    char byte = 'x';

    signal(SIGPIPE, SIG_IGN);
    MUST(bind(listener, (struct sockaddr *)&a, sizeof a));
    MUST(getsockname(listener, (struct sockaddr *)&a, &len));
    MUST(listen(listener, 1));
    pthread_t t = go(answerer, &listener);
    MUST(connect(s, (struct sockaddr *)&a, sizeof a));
    ssize_t n = write(s, &byte, 1);
    if (n == 1)
        n = read(s, &byte, 1);
    assert(n == 1 || (expected && (n == 0 || errno == ECONNRESET || errno == EPIPE)));
    /* Not closed yet: whether accept gets its number is not what this is about. */
    shutdown(s, SHUT_RDWR);
    join(t);
    close(s);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "semop")) semaphore(0);
    else if (arg_is(argc, argv, "semop-ok")) semaphore(1);
    else if (arg_is(argc, argv, "short")) records(0);
    else if (arg_is(argc, argv, "short-ok")) records(1);
    else if (arg_is(argc, argv, "spurious")) condition(0);
    else if (arg_is(argc, argv, "while")) condition(1);
    else if (arg_is(argc, argv, "again")) not_waiting();
    else if (arg_is(argc, argv, "fork")) child();
    else if (arg_is(argc, argv, "reset")) connection(0);
    else if (arg_is(argc, argv, "reset-ok")) connection(1);
    else return 2;
    return 0;
}
