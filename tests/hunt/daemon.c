/* A small daemon: a thread for each connection answers and counts, SIGHUP makes the main thread reload. The two take the same locks, in different
 * order. `client` is its client; `once` serves one client and ends; `quick` is as the daemon, without the bug; `forks` goes to the background and
 * writes its process id to the file daemon.pid. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t config = PTHREAD_MUTEX_INITIALIZER, statistics = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t asked;
static int level, served, orderly;

static void hup(int signal)
{
    asked = signal;
}

static struct sockaddr_in address(void)
{
    struct sockaddr_in to;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons(4711);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

static void *serve(void *arg)
{
    int peer = (int)(long)arg;
    char c;
    if (read(peer, &c, 1) == 1) {
        pthread_mutex_lock(orderly ? &config : &statistics);
        pthread_mutex_lock(orderly ? &statistics : &config);
        served++;
        c += level;
        pthread_mutex_unlock(&config);
        pthread_mutex_unlock(&statistics);
        if (write(peer, &c, 1) != 1)
            abort();
    }
    close(peer);
    return NULL;
}

static void reload(void)
{
    pthread_mutex_lock(&config);
    pthread_mutex_lock(&statistics);
    level = served = 0;
    pthread_mutex_unlock(&statistics);
    pthread_mutex_unlock(&config);
}

static int client(void)
{
    struct sockaddr_in to = address();
    int s = socket(AF_INET, SOCK_STREAM, 0);
    char c = 'x';
    if (connect(s, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("client");
        abort();
    }
    return write(s, &c, 1) == 1 && read(s, &c, 1) == 1 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct sigaction action;
    struct sockaddr_in to = address();
    int s, peer, once = argc > 1 && strcmp(argv[1], "once") == 0;
    if (argc > 1 && strcmp(argv[1], "client") == 0)
        return client();
    orderly = argc > 1 && strcmp(argv[1], "quick") == 0;
    if (argc > 1 && strcmp(argv[1], "forks") == 0) {
        FILE *file;
        if (fork() > 0)
            return 0;
        file = fopen("daemon.pid", "w");
        if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0)
            return 1;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = hup;
    sigaction(SIGHUP, &action, NULL);
    s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (struct sockaddr *)&to, sizeof to) != 0 || listen(s, 5) != 0)
        return 1;
    for (;;) {
        pthread_t thread;
        if (asked) {
            asked = 0;
            reload();
        }
        peer = accept(s, NULL, NULL);
        if (peer < 0 && errno == EINTR)
            continue;
        if (peer < 0)
            return 1;
        if (once) {
            serve((void *)(long)peer);
            close(s);
            return 0;
        }
        pthread_create(&thread, NULL, serve, (void *)(long)peer);
        pthread_detach(thread);
    }
}
