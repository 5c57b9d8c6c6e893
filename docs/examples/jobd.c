/*
 * A small daemon and its clients: the example of README.md.
 *
 *   jobd serve [N]   listens on a port of loopback, hands each job to one of N workers (2), answers; ends when it is told to
 *   jobd ask         a client with one job
 *   jobd quit        tells the daemon to end
 *
 * It hangs at shutdown, once in a great many runs: main sets `stopping` without the lock. A worker that has just seen that there is
 * nothing to do, and is not yet waiting, misses the broadcast.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 16, ROOM = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int queue[ROOM];
static int head, tail;
static int stopping;

static void put(int connection)
{
    pthread_mutex_lock(&lock);
    queue[tail++ % ROOM] = connection;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

/* The next connection, or -1 once the daemon is to end and nothing is left. */
static int get(void)
{
    int connection = -1;

    pthread_mutex_lock(&lock);
    while (head == tail && !stopping)
        pthread_cond_wait(&not_empty, &lock);
    if (head != tail)
        connection = queue[head++ % ROOM];
    pthread_mutex_unlock(&lock);
    return connection;
}

static void *worker(void *argument)
{
    int connection;

    while ((connection = get()) >= 0) {
        if (write(connection, "done", 4) != 4)
            perror("jobd: write");
        close(connection);
    }
    return argument;
}

static struct sockaddr_in address(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7711)};

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static int serve(int count)
{
    struct sockaddr_in at = address();
    pthread_t workers[MOST];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    char command = 0;

    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 8) != 0)
        return perror("jobd"), 1;
    for (int i = 0; i < count; i++)
        pthread_create(&workers[i], NULL, worker, NULL);
    while (command != 'q') {
        int connection = accept(listener, NULL, NULL);
        if (read(connection, &command, 1) == 1 && command == 'j')
            put(connection);
        else
            close(connection);
    }
    stopping = 1;
    pthread_cond_broadcast(&not_empty);
    for (int i = 0; i < count; i++)
        pthread_join(workers[i], NULL);
    return 0;
}

static int ask(char command)
{
    struct sockaddr_in at = address();
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    char answer[8];

    while (connect(connection, (struct sockaddr *)&at, sizeof at) != 0) {
        if (errno != ECONNREFUSED)
            return perror("jobd"), 1;
        usleep(10000);
    }
    if (write(connection, &command, 1) != 1)
        return 1;
    while (read(connection, answer, sizeof answer) > 0)
        ;
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc == 3 ? atoi(argv[2]) : 2;

    if (argc >= 2 && strcmp(argv[1], "serve") == 0 && count > 0 && count <= MOST)
        return serve(count);
    if (argc == 2 && strcmp(argv[1], "ask") == 0)
        return ask('j');
    if (argc == 2 && strcmp(argv[1], "quit") == 0)
        return ask('q');
    fprintf(stderr, "usage: jobd serve [N]|ask|quit\n");
    return 2;
}
