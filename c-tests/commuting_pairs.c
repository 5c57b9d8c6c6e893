/* Two uses of a variable whose only "order" are two operations that commute: `v = 1; FIRST` by the first thread, `SECOND; assert(v == 1)` by another
 * one, which begins with an operation of its own: so that in the one order that is explored it comes second. The search explores the two operations in one order only; if that counted as an order of the two uses, the race would be hidden.
 * Arguments: FIRST SECOND, and "fixed": what both do is done under a lock, and the second looks only if the first has been there. */
#include "t.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/futex.h>

static int v, been;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, each[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_spinlock_t spin;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
static pthread_once_t done = PTHREAD_ONCE_INIT;
static sem_t start, some, none;
static int set, event, pipes[2], sockets[2], epolls, appended[2], locked[2], word, queue, segment;
static union { int whole; volatile unsigned char byte[4]; } bytes;
static mqd_t messages;
static pid_t child;

static void nothing(void) {}

/* The operations; `me` is 0 for the first one and 1 for the second one. */
#define OPS(X) \
    X(nothing, ) \
    X(post, MUST(sem_post(&some))) \
    X(wait, MUST(sem_wait(&some))) \
    X(value, int n; MUST(sem_getvalue(&some, &n))) \
    X(trywait, assert(sem_trywait(&none) == -1)) \
    X(value_none, int n; MUST(sem_getvalue(&none, &n))) \
    X(pool, MUST(sem_wait(&some)); MUST(sem_post(&some))) \
    X(semop_up, sem_change(set, 0, 1)) \
    X(semop_down, sem_change(set, 0, -1)) \
    X(semop_own, sem_change(set, 1 + me, 1)) \
    X(semop_ask, assert(semctl(set, 0, GETVAL) >= 0)) \
    X(event_add, MUST(eventfd_write(event, 1))) \
    X(pipe_write, assert(write(pipes[1], "x", 1) == 1)) \
    X(pipe_read, char c; assert(read(pipes[0], &c, 1) == 1)) \
    X(socket_send, assert(write(sockets[me], "x", 1) == 1)) \
    X(socket_receive, char c; assert(read(sockets[me], &c, 1) == 1)) \
    X(poll, struct pollfd p = { .fd = event, .events = POLLOUT }; assert(poll(&p, 1, 0) == 1)) \
    X(poll_pipe, struct pollfd p = { .fd = pipes[0], .events = POLLIN }; assert(poll(&p, 1, 0) == 1)) \
    X(epoll_look, struct epoll_event e; assert(epoll_wait(epolls, &e, 1, 0) == 0)) \
    X(epoll_add, struct epoll_event e = { .events = EPOLLIN }; MUST(epoll_ctl(epolls, EPOLL_CTL_ADD, sockets[me], &e))) \
    X(trylock, assert(pthread_mutex_trylock(&held) == EBUSY)) \
    X(lock_again, if (me == 0) MUST(pthread_mutex_lock(&again))) \
    X(trylock_again, if (me == 1) assert(pthread_mutex_trylock(&again) == EBUSY)) \
    X(lock_own, MUST(pthread_mutex_lock(&each[me])); MUST(pthread_mutex_unlock(&each[me]))) \
    X(tryspin, assert(pthread_spin_trylock(&spin) == EBUSY)) \
    X(read_lock, MUST(pthread_rwlock_rdlock(&rw))) \
    X(read_try, MUST(pthread_rwlock_tryrdlock(&rw))) \
    X(read_unlock, MUST(pthread_rwlock_rdlock(&rw)); MUST(pthread_rwlock_unlock(&rw))) \
    X(write_try, assert(pthread_rwlock_trywrlock(&rw) == EBUSY)) \
    X(signal, MUST(pthread_cond_signal(&nobody))) \
    X(broadcast, MUST(pthread_cond_broadcast(&nobody))) \
    X(wake, assert(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0)) \
    X(futex_wait, assert(syscall(SYS_futex, &word, FUTEX_WAIT, 1, NULL, NULL, 0) == -1)) \
    X(once, MUST(pthread_once(&done, nothing))) \
    X(yield, MUST(sched_yield())) \
    X(sleep, MUST(usleep(1))) \
    X(create, pthread_t t = go(idle, NULL); join(t)) \
    X(detach, pthread_t t = go(idle, NULL); MUST(pthread_detach(t))) \
    X(dup, assert(dup(event) > 2)) \
    X(open, assert(open("/dev/null", O_RDONLY) > 2)) \
    X(open_close, int fd = open("/dev/null", O_RDONLY); MUST(close(fd))) \
    X(append, assert(write(appended[me], "x", 1) == 1)) \
    X(place_read, char c; assert(pread(appended[me], &c, 1, 0) == 1)) \
    X(stat, struct stat s; MUST(stat("commuting_name", &s))) \
    X(make_own, int fd = open(me ? "commuting_b" : "commuting_a", O_CREAT | O_WRONLY, 0600); assert(fd > 2)) \
    X(lock_bytes, struct flock l = { .l_type = F_WRLCK, .l_start = 8 * me, .l_len = 2 }; MUST(fcntl(locked[me], F_OFD_SETLK, &l))) \
    X(test_bytes, struct flock l = { .l_type = F_WRLCK, .l_start = 32, .l_len = 2 }; MUST(fcntl(locked[me], F_OFD_GETLK, &l))) \
    X(share_lock, MUST(flock(locked[me], LOCK_SH))) \
    X(prints, printf("x")) \
    X(errors, fprintf(stderr, "x")) \
    X(kill, MUST(kill(child, SIGCHLD))) \
    X(kill_own, MUST(kill(getpid(), SIGWINCH))) \
    X(kill_none, MUST(kill(child, 0))) \
    X(pending, sigset_t s; MUST(sigpending(&s))) \
    X(ask_mask, assert(umask(022) >= 0)) \
    X(ask_nice, assert(getpriority(PRIO_PROCESS, 0) == 0)) \
    X(ask_limit, struct rlimit l; MUST(getrlimit(RLIMIT_NOFILE, &l))) \
    X(attach, assert(shmat(segment, NULL, 0) != (void *)-1)) \
    X(message_ask, struct msqid_ds d; MUST(msgctl(queue, IPC_STAT, &d))) \
    X(message_send, struct { long type; char c; } m = { 1 + me, 'x' }; MUST(msgsnd(queue, &m, 1, 0))) \
    X(mq_ask, struct mq_attr a; MUST(mq_getattr(messages, &a))) \
    X(mq_send, MUST(mq_send(messages, "x", 1, 0))) \
    X(byte, bytes.byte[me] = 1) \
    X(look, assert(bytes.byte[0] < 9)) \
    X(locked_byte, __atomic_fetch_add(&bytes.byte[me], 1, __ATOMIC_SEQ_CST))

static void *idle(void *unused)
{
    return unused;
}

#define FUNCTION(name, ...) static void do_##name(int me) { (void)me; __VA_ARGS__; }
OPS(FUNCTION)
#define ROW(name, ...) { #name, do_##name },
static const struct { const char *name; void (*run)(int); } ALL[] = { OPS(ROW) };

static void (*named(const char *name))(int)
{
    for (unsigned n = 0; n < sizeof ALL / sizeof ALL[0]; n++)
        if (!strcmp(ALL[n].name, name))
            return ALL[n].run;
    abort();
}

static void (*first)(int), (*second)(int);
static int fixed;

static void *looks(void *unused)
{
    MUST(sem_wait(&start));
    if (fixed)
        MUST(pthread_mutex_lock(&guard));
    second(1);
    assert(fixed ? !been || v == 1 : v == 1);
    if (fixed)
        MUST(pthread_mutex_unlock(&guard));
    return unused;
}

/* Makes the bytes an object. */
static void *writes_bytes(void *unused)
{
    bytes.whole = 0;
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t other, third;
    int uses_bytes;

    MUST(argc < 3);
    first = named(argv[1]), second = named(argv[2]), fixed = argc > 3;
    uses_bytes = strstr(argv[1], "byte") || strstr(argv[2], "look");
    MUST(sem_init(&start, 0, 1)), MUST(sem_init(&some, 0, 4)), MUST(sem_init(&none, 0, 0));
    MUST(pthread_spin_init(&spin, 0));
    set = new_sems(3, 4);
    event = eventfd(0, 0);
    MUST(pipe(pipes)), MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    assert(write(pipes[1], "xxxx", 4) == 4);
    epolls = epoll_create1(0);
    for (int n = 0; n < 2; n++) {
        appended[n] = open("commuting_file", O_CREAT | O_APPEND | O_RDWR, 0600);
        locked[n] = open("commuting_name", O_CREAT | O_RDWR, 0600);
        assert(write(appended[n], "x", 1) == 1);
        if (!strcmp(argv[1], "socket_receive") || !strcmp(argv[2], "socket_receive"))
            assert(write(sockets[n], "xx", 2) == 2);
    }
    queue = msgget(IPC_PRIVATE, 0600), segment = shmget(IPC_PRIVATE, 4096, 0600);
    messages = mq_open("/commuting", O_CREAT | O_RDWR, 0600, NULL);
    assert(event >= 0 && epolls >= 0 && queue >= 0 && segment >= 0 && messages != (mqd_t)-1);
    MUST(pthread_once(&done, nothing));
    MUST(pthread_mutex_lock(&held)), MUST(pthread_mutex_lock(&again)), MUST(pthread_spin_lock(&spin));
    if (strstr(argv[1], "try") || strstr(argv[2], "try"))
        MUST(pthread_rwlock_rdlock(&rw));
    if (strstr(argv[1], "kill") || strstr(argv[2], "kill")) {
        child = fork();
        if (child == 0) {
            /* Until it is killed by the end of its parent's pipe. */
            char c;
            close(sockets[1]);
            _exit(read(sockets[0], &c, 1) < 0);
        }
    }

    other = go(looks, NULL);
    if (uses_bytes)
        third = go(writes_bytes, NULL);
    if (fixed)
        MUST(pthread_mutex_lock(&guard));
    v = 1;
    first(0);
    been = 1;
    if (fixed)
        MUST(pthread_mutex_unlock(&guard));
    join(other);
    if (uses_bytes)
        join(third);
    if (child > 0) {
        assert(write(sockets[1], "x", 1) == 1);
        reap(child);
    }
    return 0;
}
