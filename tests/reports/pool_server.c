#define _GNU_SOURCE
/* A pool server with clients: workers take jobs from a queue; a client's account and the log have a lock each, taken in two orders. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 2

struct account { pthread_mutex_t lock; int balance; };
static struct account accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 100}, {PTHREAD_MUTEX_INITIALIZER, 100}};
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int queue[8], head, tail;

static void put(int fd) {
    pthread_mutex_lock(&queue_lock);
    queue[tail++ % 8] = fd;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue_lock);
}

static int get(void) {
    pthread_mutex_lock(&queue_lock);
    while (head == tail) pthread_cond_wait(&not_empty, &queue_lock);
    int fd = queue[head++ % 8];
    pthread_mutex_unlock(&queue_lock);
    return fd;
}

static void transfer(struct account *from, struct account *to, int amount) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *worker(void *arg) {
    (void)arg;
    int fd = get();
    char job;
    if (read(fd, &job, 1) == 1) {
        if (job == 'a') transfer(&accounts[0], &accounts[1], 10);
        else transfer(&accounts[1], &accounts[0], 10);
        if (write(fd, "k", 1) != 1) perror("write");
    }
    close(fd);
    return NULL;
}

static void client(int port, char job) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) exit(1);
    char answer;
    if (write(fd, &job, 1) != 1 || read(fd, &answer, 1) != 1) exit(1);
    exit(0);
}

int main(void) {
    int port = 7700, one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 4)) { perror("listen"); return 1; }
    pid_t clients[2];
    for (int i = 0; i < 2; i++) if ((clients[i] = fork()) == 0) client(port, "ab"[i]);
    pthread_t pool[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "pool-%d", i);
        pthread_create(&pool[i], NULL, worker, NULL);
        pthread_setname_np(pool[i], name);
    }
    for (int i = 0; i < 2; i++) put(accept(listener, NULL, NULL));
    for (int i = 0; i < WORKERS; i++) pthread_join(pool[i], NULL);
    for (int i = 0; i < 2; i++) waitpid(clients[i], NULL, 0);
    return 0;
}
