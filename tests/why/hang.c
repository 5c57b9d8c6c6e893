// Hangs in the way that is asked for, until it is told to go on: a thread beside counts, and obeys what comes by standard input:
// 'c' prints how far it has counted, 'r' releases those that hang. Exits with 0 if every call that hung did then what it should,
// with 9 if one was disturbed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(e) do { if ((e) != 0) disturbed(__LINE__); } while (0)
#define MANY 200000

static void disturbed(int line) { fprintf(stderr, "line %d: %s\n", line, strerror(errno)); _exit(9); }

struct account { long money; pthread_mutex_t lock; };
static struct account bank[2] = {{1, PTHREAD_MUTEX_INITIALIZER}, {2, PTHREAD_MUTEX_INITIALIZER}};
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both, meeting;
static sem_t jobs;
static int is_ready;
static struct account *common;
static int pipes[2][2], files[2][2], set, queue[2], event, quiet;
static void (*release)(void);

static void *count(void *unused) {
    (void)unused;
    long counted = 0;
    for (;;) {
        struct pollfd in = {0, POLLIN, 0};
        char c = 0;
        counted++;
        if (poll(&in, 1, 1) > 0 && read(0, &c, 1) == 1) {
            if (c == 'c') { printf("%ld\n", counted); fflush(stdout); }
            if (c == 'r') { release(); return 0; }
        } else if (c == 0 && in.revents & POLLHUP) {
            _exit(8);
        }
    }
}

static void start_counting(void) {
    pthread_t t;
    if (!quiet) MUST(pthread_create(&t, 0, count, 0));
}

static void say_ready(void) { printf("ready\n"); fflush(stdout); }

static pthread_t start(void *(*f)(void *)) { pthread_t t; MUST(pthread_create(&t, 0, f, 0)); return t; }
static void meet(void) { pthread_barrier_wait(&both); }

// ------------------------------------------------------------------------------------------------------------- threads
static void transfer(int from, int to) {
    MUST(pthread_mutex_lock(&bank[from].lock));
    meet();
    MUST(pthread_mutex_lock(&bank[to].lock));
    MUST(pthread_mutex_unlock(&bank[to].lock));
}
static void *alice(void *u) { transfer(0, 1); return u; }
static void *bob(void *u) { pthread_setname_np(pthread_self(), "bob"); transfer(1, 0); return u; }
static void unlock_both(void) { pthread_mutex_unlock(&bank[0].lock); pthread_mutex_unlock(&bank[1].lock); }
static void two(void *(*f)(void *), void *(*g)(void *)) {
    pthread_t a = start(f), b = start(g);
    start_counting(); say_ready();
    MUST(pthread_join(a, 0)); MUST(pthread_join(b, 0));
}
static void mutex(void) { release = unlock_both; two(alice, bob); }

// Nobody but its owner may release one of these.
static void of_kind(int robust, int protocol, int type) {
    pthread_mutexattr_t a;
    MUST(pthread_mutexattr_init(&a)); MUST(pthread_mutexattr_settype(&a, type));
    if (robust) MUST(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
    MUST(pthread_mutexattr_setprotocol(&a, protocol));
    for (int i = 0; i < 2; i++) MUST(pthread_mutex_init(&bank[i].lock, &a));
    mutex();
}
static void robust(void) { of_kind(1, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL); }
static void inherits(void) { of_kind(0, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL); }
static void recursive(void) { of_kind(0, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_RECURSIVE); }

static void *consumer(void *u) {
    MUST(pthread_mutex_lock(&bank[0].lock));
    while (!is_ready) MUST(pthread_cond_wait(&ready, &bank[0].lock));
    MUST(pthread_mutex_unlock(&bank[0].lock));
    return u;
}
static void make_ready(void) {
    pthread_mutex_lock(&bank[0].lock); is_ready = 1; pthread_cond_broadcast(&ready); pthread_mutex_unlock(&bank[0].lock);
}
static void condition(void) {
    release = make_ready;
    pthread_t t = start(consumer);
    start_counting(); say_ready();
    MUST(pthread_join(t, 0));
}
static void *late(void *u) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); until.tv_sec += 30;
    MUST(pthread_mutex_lock(&bank[0].lock));
    while (!is_ready) MUST(pthread_cond_timedwait(&ready, &bank[0].lock, &until));
    MUST(pthread_mutex_unlock(&bank[0].lock));
    return u;
}
static void limited(void) {
    release = make_ready;
    pthread_t t = start(late);
    start_counting(); say_ready();
    MUST(pthread_join(t, 0));
}
static void *wants_first(void *u) { MUST(pthread_mutex_lock(&bank[0].lock)); return u; }
static void unlock_first(void) { pthread_mutex_unlock(&bank[0].lock); }
static void join(void) {
    release = unlock_first;
    MUST(pthread_mutex_lock(&bank[0].lock));
    pthread_t t = start(wants_first);
    start_counting(); say_ready();
    MUST(pthread_join(t, 0));
}
static void *writer(void *u) {
    MUST(pthread_rwlock_wrlock(&table)); meet(); MUST(pthread_mutex_lock(&bank[0].lock));
    MUST(pthread_rwlock_unlock(&table)); return u;
}
static void *reader(void *u) {
    MUST(pthread_mutex_lock(&bank[0].lock)); meet(); MUST(pthread_rwlock_rdlock(&table)); return u;
}
static void rwlock(void) { release = unlock_first; two(writer, reader); }
static void *reads(void *u) {
    MUST(pthread_rwlock_rdlock(&table)); meet(); MUST(pthread_mutex_lock(&bank[0].lock));
    MUST(pthread_rwlock_unlock(&table)); return u;
}
static void *writes(void *u) {
    MUST(pthread_mutex_lock(&bank[0].lock)); meet(); MUST(pthread_rwlock_wrlock(&table)); return u;
}
static void rwlock_read(void) { release = unlock_first; two(reads, writes); }
static void again(void) {
    release = unlock_first;
    start_counting(); say_ready();
    MUST(pthread_mutex_lock(&bank[0].lock)); MUST(pthread_mutex_lock(&bank[0].lock));
}
static void *leaves(void *u) { MUST(pthread_mutex_lock(&bank[0].lock)); return u; }
static void owner_over(void) {
    release = unlock_first;
    MUST(pthread_join(start(leaves), 0));
    start_counting(); say_ready();
    MUST(pthread_mutex_lock(&bank[0].lock));
}
static void damage(void) { bank[0].lock.__data.__owner = 0x6ead6eef; memset(&bank[0].lock.__data.__list, 0xff, 16); }
static void damaged(void) {
    release = unlock_first;
    MUST(pthread_mutex_lock(&bank[0].lock)); damage();
    start_counting(); say_ready();
    MUST(pthread_mutex_lock(&bank[0].lock));
}
static void post(void) { sem_post(&jobs); }
static void semaphore(void) {
    release = post; sem_init(&jobs, 0, 0);
    start_counting(); say_ready();
    MUST(sem_wait(&jobs));
}
static void *comes(void *u) { pthread_barrier_wait(&meeting); return u; }
static void come(void) { pthread_barrier_wait(&meeting); }
static void barrier(void) { release = come; MUST(pthread_barrier_init(&meeting, 0, 3)); two(comes, comes); }
static void *spins(void *u) { while (!__atomic_load_n(&is_ready, __ATOMIC_RELAXED)); return u; }
static void stop_spinning(void) { __atomic_store_n(&is_ready, 1, __ATOMIC_RELAXED); }
static void busy(void) {
    release = stop_spinning;
    pthread_t t = start(spins);
    start_counting(); say_ready();
    MUST(pthread_join(t, 0));
}
// A handler that locks what it has interrupted the holder of.
static void locks_again(int s) { (void)s; MUST(pthread_mutex_lock(&bank[0].lock)); }
static void critical(void) { MUST(pthread_mutex_lock(&bank[0].lock)); say_ready(); raise(SIGUSR2); }
static void handler(void) {
    release = unlock_first;
    signal(SIGUSR2, locks_again);
    start_counting();
    critical();
}
static void unlock_stream(void) { funlockfile(stderr); }
static void *prints(void *u) { meet(); fputs("x", stderr); return u; }
static void *flocks(void *u) {
    flockfile(stderr); meet(); MUST(pthread_mutex_lock(&bank[0].lock)); return u;
}
static void stream(void) {
    release = unlock_first; (void)unlock_stream;
    MUST(pthread_mutex_lock(&bank[0].lock));
    pthread_t a = start(prints), b = start(flocks);
    start_counting(); say_ready();
    MUST(pthread_join(b, 0)); funlockfile(stderr); (void)a;
}

// ----------------------------------------------------------------------------------------------------------- processes
static void change(int n, int by) {
    struct sembuf op = {n, by, 0};
    MUST(semop(set, &op, 1));
}
static void give_back(void) { change(0, 1); change(1, 1); }
static void in_two(void (*parent)(void), void (*child)(void)) {
    pid_t pid = fork();
    if (pid == 0) { child(); _exit(0); }
    int status = 0;
    start_counting();
    parent();
    if (waitpid(pid, &status, 0) != pid) disturbed(__LINE__);
    if (status != 0) _exit(9);
}
static int go[2][2];
static void tell_and_wait(int me) {
    char c = 0;
    MUST(write(go[me][1], &c, 1) != 1); MUST(read(go[!me][0], &c, 1) != 1);
    if (me == 0) say_ready();
}
static void sem_parent(void) { change(0, -1); tell_and_wait(0); change(1, -1); }
static void sem_child(void) { change(1, -1); tell_and_wait(1); change(0, -1); }
static void semop_(void) {
    release = give_back;
    set = semget(IPC_PRIVATE, 2, 0600); change(0, 1); change(1, 1);
    in_two(sem_parent, sem_child);
    MUST(semctl(set, 0, IPC_RMID));
}
static char buffer[MANY];
static void all(ssize_t (*f)(int, void *, size_t), int fd) {
    for (size_t n = 0; n < MANY;) { ssize_t r = f(fd, buffer, MANY - n); if (r <= 0) disturbed(__LINE__); n += r; }
}
static void write_many(int fd) { if (write(fd, buffer, MANY) != MANY) disturbed(__LINE__); }
static void drain(void) { all((ssize_t (*)(int, void *, size_t))read, pipes[1][0]); }
static void pipe_parent(void) { close(pipes[0][0]); close(pipes[1][1]); tell_and_wait(0); write_many(pipes[0][1]); }
static void pipe_child(void) {
    close(pipes[0][1]); close(pipes[1][0]); tell_and_wait(1); write_many(pipes[1][1]);
    all((ssize_t (*)(int, void *, size_t))read, pipes[0][0]);
}
static void pipe_(void) {
    release = drain;
    MUST(pipe(pipes[0])); MUST(pipe(pipes[1]));
    in_two(pipe_parent, pipe_child);
}
static int pair[2];
static void send_word(void) { MUST(write(pair[0], "x", 1) != 1); }
static void ask(int fd) { char c; MUST(recv(fd, &c, 1, 0) != 1); }
static void ask_parent(void) { close(pair[1]); tell_and_wait(0); ask(pair[0]); }
static void ask_child(void) { close(pair[0]); tell_and_wait(1); ask(pair[1]); MUST(write(pair[1], "y", 1) != 1); }
static void sockets(void) {
    release = send_word;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    in_two(ask_parent, ask_child);
}
static int connection;
static const char *port_file;
static void send_byte(void) { MUST(write(connection, "x", 1) != 1); }
static void serve(void) {
    release = send_byte;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(s, (struct sockaddr *)&at, size)); MUST(listen(s, 1));
    MUST(getsockname(s, (struct sockaddr *)&at, &size));
    FILE *f = fopen("port", "w");
    fprintf(f, "%d\n", ntohs(at.sin_port)); MUST(fclose(f));
    start_counting(); say_ready();
    if ((connection = accept(s, 0, 0)) < 0) disturbed(__LINE__);
    ask(connection);
}
static void client(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int port, s = socket(AF_INET, SOCK_STREAM, 0);
    FILE *f = fopen(port_file, "r");
    if (!f || fscanf(f, "%d", &port) != 1) disturbed(__LINE__);
    fclose(f);
    at.sin_port = htons(port);
    MUST(connect(s, (struct sockaddr *)&at, sizeof at));
    say_ready();
    ask(s); MUST(write(s, "y", 1) != 1);
}
static void take(int f) { MUST(flock(files[f][0], LOCK_EX)); }
static void unlock_file(void) { MUST(flock(files[0][0], LOCK_UN)); }
static const char *names[2];
static void open_files(void) {
    for (int f = 0; f < 2; f++) if ((files[f][0] = open(names[f], O_RDWR | O_CREAT, 0600)) < 0) disturbed(__LINE__);
}
static void file_parent(void) { open_files(); take(0); tell_and_wait(0); take(1); }
static void file_child(void) { open_files(); take(1); tell_and_wait(1); take(0); }
static void flock_(void) { release = unlock_file; in_two(file_parent, file_child); }
static void record(int f) { struct flock l = {F_WRLCK, SEEK_SET, 0, 0, 0}; MUST(fcntl(files[f][0], F_SETLKW, &l)); }
static void record_parent(void) { open_files(); record(0); tell_and_wait(0); flock(files[1][0], LOCK_EX); }
static void record_child(void) { open_files(); take(1); tell_and_wait(1); record(0); }
static void unlock_record(void) { struct flock l = {F_UNLCK, SEEK_SET, 0, 0, 0}; MUST(fcntl(files[0][0], F_SETLK, &l)); }
static void fcntl_(void) { release = unlock_record; in_two(record_parent, record_child); }
static void common_parent(void) {
    MUST(pthread_mutex_lock(&common[0].lock)); tell_and_wait(0); MUST(pthread_mutex_lock(&common[1].lock));
}
static void common_child(void) {
    MUST(pthread_mutex_lock(&common[1].lock)); tell_and_wait(1); MUST(pthread_mutex_lock(&common[0].lock));
}
static void unlock_common(void) { for (int i = 0; i < 2; i++) pthread_mutex_unlock(&common[i].lock); }
static void shared(void) {
    release = unlock_common;
    common = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a); pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < 2; i++) pthread_mutex_init(&common[i].lock, &a);
    in_two(common_parent, common_child);
}
struct message { long type; char text[8]; };
static void receive(int q) { struct message m; MUST(msgrcv(queue[q], &m, 8, 0, 0) < 0); }
static void post_message(int q);
static void send_all(void) { post_message(0); post_message(1); }
static void message_parent(void) { post_message(1); tell_and_wait(0); receive(0); receive(0); }
static void message_child(void) { post_message(0); tell_and_wait(1); receive(1); receive(1); }
static void messages(void) {
    release = send_all;
    for (int q = 0; q < 2; q++) queue[q] = msgget(IPC_PRIVATE, 0600);
    in_two(message_parent, message_child);
    for (int q = 0; q < 2; q++) msgctl(queue[q], IPC_RMID, 0);
}
static void post_message(int q) { struct message m = {1, "hello"}; MUST(msgsnd(queue[q], &m, 8, 0)); }

// ---------------------------------------------------------------------------------------------------------- no deadlocks
static void on_signal(int s) { (void)s; MUST(write(pipes[0][1], "s", 1) != 1); }
static void signal_it(void) { kill(getpid(), SIGUSR1); }
static void self_pipe(void) {
    release = signal_it;
    MUST(pipe(pipes[0]));
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGUSR1, &action, 0));
    start_counting(); say_ready();
    char c;
    MUST(read(pipes[0][0], &c, 1) != 1);
}
static void ring(void) { long one = 1; MUST(write(event, &one, 8) != 8); is_ready = 1; make_ready(); }
static void pool(void) {
    release = ring;
    pthread_t a = start(consumer), b = start(consumer);
    int e = epoll_create1(0);
    struct sockaddr_un { sa_family_t f; char path[14]; } name = {AF_UNIX, ""};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(bind(s, (struct sockaddr *)&name, sizeof(sa_family_t))); MUST(listen(s, 1));
    event = eventfd(0, 0);
    struct epoll_event in = {EPOLLIN, {0}};
    MUST(epoll_ctl(e, EPOLL_CTL_ADD, event, &in)); MUST(epoll_ctl(e, EPOLL_CTL_ADD, s, &in));
    start_counting(); say_ready();
    MUST(epoll_wait(e, &in, 1, -1) != 1);
    MUST(pthread_join(a, 0)); MUST(pthread_join(b, 0));
}
static void say_it(void) { MUST(write(pipes[0][0], "x", 1) != 1); }
static void fifo(void) {
    release = say_it;
    unlink("control"); MUST(mkfifo("control", 0600));
    if ((pipes[0][0] = open("control", O_RDWR)) < 0) disturbed(__LINE__);
    start_counting(); say_ready();
    char c;
    MUST(read(pipes[0][0], &c, 1) != 1);
}
static void *sleeps(void *u) { while (!__atomic_load_n(&is_ready, __ATOMIC_RELAXED)) usleep(300000); return u; }
static void sleeping(void) {
    release = stop_spinning;
    pthread_t t = start(sleeps);
    start_counting(); say_ready();
    while (!__atomic_load_n(&is_ready, __ATOMIC_RELAXED)) usleep(300000);
    MUST(pthread_join(t, 0));
}

int main(int argc, char **argv) {
    struct { const char *name; void (*hang)(void); } all[] = {
        {"mutex", mutex}, {"cond", condition}, {"join", join}, {"rwlock", rwlock}, {"rwlock_read", rwlock_read},
        {"again", again}, {"owner_over", owner_over}, {"damaged", damaged}, {"sem", semaphore}, {"barrier", barrier},
        {"busy", busy}, {"stream", stream}, {"semop", semop_}, {"pipe", pipe_}, {"sockets", sockets}, {"flock", flock_},
        {"fcntl", fcntl_}, {"shared", shared}, {"messages", messages}, {"pool", pool}, {"sleeping", sleeping},
        {"limited", limited}, {"serve", serve}, {"client", client}, {"self_pipe", self_pipe}, {"fifo", fifo}, {"robust", robust},
        {"inherits", inherits}, {"recursive", recursive}, {"handler", handler},
    };
    if (argc < 2) return 2;
    // Without a thread that counts: nobody is left who could help. It ends when it is killed.
    quiet = argc > 2 && strcmp(argv[2], "quiet") == 0;
    port_file = argc > 2 ? argv[2] : "port";
    names[0] = "first.lock"; names[1] = "second.lock";
    MUST(pthread_barrier_init(&both, 0, 2)); MUST(pipe(go[0])); MUST(pipe(go[1]));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) { all[i].hang(); return 0; }
    return 2;
}
