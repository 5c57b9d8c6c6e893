// Makes one of everything that outlives the process that made it, and takes nothing away.
//
// Usage: leaves_all TAG PORT KEY [remove]. TAG is in all names, KEY in all System V keys; the current directory has a
// file `given`. With `remove` it takes away what is left of a run without vsrun.

#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *tag;
static int port, key;

// "PREFIX<tag>SUFFIX", in a static buffer.
static const char *name(const char *prefix, const char *suffix) {
    static char buffer[100];
    snprintf(buffer, sizeof buffer, "%s%s%s", prefix, tag, suffix);
    return buffer;
}

static void files(void) {
    int fd = open(name("", ".file"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert(fd >= 0 && write(fd, "left", 4) == 4);
    assert(mkdir(name("", ".dir"), 0700) == 0);
    assert(rename("given", name("", ".dir/taken")) == 0);
    fd = open(name("/tmp/", ".file"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert(fd >= 0 && write(fd, "left", 4) == 4);
}

// A server of its own: a port of each kind, a path and an abstract name, and a connection that it closes first.
static void *client(void *address) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char byte;
    assert(connect(fd, address, sizeof(struct sockaddr_in)) == 0);
    assert(write(fd, "?", 1) == 1 && read(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 0);
    close(fd);
    return NULL;
}

static void sockets(void) {
    struct sockaddr_in at = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
    int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    assert(bind(tcp, (void *)&at, sizeof at) == 0 && listen(tcp, 5) == 0);
    assert(bind(udp, (void *)&at, sizeof at) == 0);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, client, &at) == 0);
    int fd = accept(tcp, NULL, NULL);
    char byte;
    assert(fd >= 0 && read(fd, &byte, 1) == 1 && write(fd, "!", 1) == 1);
    close(fd);
    assert(pthread_join(thread, NULL) == 0);

    struct sockaddr_un local = {AF_UNIX, ""};
    strcpy(local.sun_path, name("", ".socket"));
    int path = socket(AF_UNIX, SOCK_STREAM, 0), hidden = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert(bind(path, (void *)&local, sizeof local) == 0 && listen(path, 1) == 0);
    memset(local.sun_path, 0, sizeof local.sun_path);
    strcpy(local.sun_path + 1, tag);
    assert(bind(hidden, (void *)&local, sizeof(sa_family_t) + 1 + strlen(tag)) == 0);
}

// A message that nobody takes, a semaphore that the end of the process undoes, a segment with something in it.
static void system_v(void) {
    int queue = msgget(key, IPC_CREAT | IPC_EXCL | 0600), set = semget(key, 2, IPC_CREAT | IPC_EXCL | 0600);
    int segment = shmget(key, 100000, IPC_CREAT | IPC_EXCL | 0600);
    struct {
        long type;
        char text[8];
    } message = {1, "left"};
    struct sembuf up[] = {{0, 1, 0}, {1, 1, SEM_UNDO}};
    assert(queue >= 0 && msgsnd(queue, &message, sizeof message.text, 0) == 0);
    assert(set >= 0 && semop(set, up, 2) == 0);
    char *memory = segment < 0 ? NULL : shmat(segment, NULL, 0);
    assert(memory && memory != (void *)-1);
    memory[99999] = 1;
}

static sem_t *posix(void) {
    sem_t *sem = sem_open(name("/", ""), O_CREAT | O_EXCL, 0600, 0);
    int fd = shm_open(name("/", ".shm"), O_CREAT | O_EXCL | O_RDWR, 0600);
    assert(sem != SEM_FAILED && fd >= 0 && ftruncate(fd, 100000) == 0);
    char *memory = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert(memory != MAP_FAILED);
    memory[99999] = 1;
    return sem;
}

// Two processes talk through a FIFO. One of them is waited for; a third one, in a session of its own, nobody waits for.
static void processes(sem_t *sem) {
    assert(mkfifo(name("", ".fifo"), 0600) == 0);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        int fd = open(name("", ".fifo"), O_WRONLY);
        _exit(write(fd, "x", 1) == 1 && sem_post(sem) == 0 ? 0 : 1);
    }
    char byte;
    int fd = open(name("", ".fifo"), O_RDONLY), status;
    assert(fd >= 0 && read(fd, &byte, 1) == 1 && sem_wait(sem) == 0);
    assert(waitpid(child, &status, 0) == child && status == 0);
    if (fork() == 0) {
        setsid();
        sleep(3);
        _exit(0);
    }
}

static void remove_all(void) {
    const char *here[] = {".file", ".dir/taken", ".dir", ".fifo", ".socket"};
    for (int i = 0; i < 5; i++) remove(name("", here[i]));
    remove(name("/tmp/", ".file"));
    sem_unlink(name("/", ""));
    shm_unlink(name("/", ".shm"));
    msgctl(msgget(key, 0), IPC_RMID, NULL);
    semctl(semget(key, 0, 0), 0, IPC_RMID);
    shmctl(shmget(key, 0, 0), IPC_RMID, NULL);
}

int main(int argc, char **argv) {
    assert(argc >= 4);
    tag = argv[1], port = atoi(argv[2]), key = (int)strtol(argv[3], NULL, 0);
    if (argc > 4) {
        remove_all();
        return 0;
    }
    files();
    sockets();
    system_v();
    processes(posix());
    return 0;
}
