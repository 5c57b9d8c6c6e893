/* A bug for each argument, for a debugger that is to show all threads of all processes.
 * "locks": two threads take two locks in opposite orders. "exec": the same after an exec. "fork": the same in a child, whose parent waits for
 * it with a thread of its own. "clients": a server and a client (--with, "client") that each wait for the other to speak. "crash": a thread
 * reads at address 0 while another one waits. "overflow": the stack of a thread is used up. "spins": a thread runs for ever. "counts": a
 * thread changes a variable at every tenth of 400 steps, then both locks. "deep": the same for 10,000 steps, then a read at address 0. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int tens, rounds = 200;
static int *nowhere;

static void *forward(void *unused)
{
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return unused;
}

static void *backward(void *unused)
{
    pthread_mutex_lock(&second);
    pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    return unused;
}

static void *waits(void *unused)
{
    pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    return unused;
}

static void *crashes(void *unused)
{
    pthread_mutex_lock(&second);
    tens = *nowhere;
    pthread_mutex_unlock(&second);
    return unused;
}

static int deeper(volatile char *above)
{
    volatile char here[4096];
    here[0] = above[0];
    return deeper(here) + here[0];
}

static void *overflows(void *unused)
{
    char top = 1;
    pthread_mutex_lock(&second);
    tens = deeper(&top);
    pthread_mutex_unlock(&second);
    return unused;
}

static void *spins(void *unused)
{
    pthread_mutex_lock(&second);
    for (volatile unsigned turns = 0;; turns++) {
    }
    return unused;
}

static void *counts(void *unused)
{
    for (int n = 1; n <= rounds; n++) {
        pthread_mutex_lock(&second);
        if (n % 10 == 0) tens++;
        pthread_mutex_unlock(&second);
    }
    return forward(unused);
}

static void *deep(void *unused)
{
    rounds = 5000;
    counts(unused);
    *nowhere = 1;
    return unused;
}

static int both(void *(*one)(void *), void *(*other)(void *))
{
    pthread_t threads[2];
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, other, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}

static int reaps(void)
{
    int status;
    pthread_t thread;
    if (fork() == 0) exit(both(forward, backward));
    pthread_mutex_lock(&first);
    pthread_create(&thread, 0, waits, 0);
    wait(&status);
    pthread_mutex_unlock(&first);
    pthread_join(thread, 0);
    return status;
}

static int speaks(int serves)
{
    struct sockaddr_un name = {AF_UNIX, "\0vsrun-debugger"};
    char word;
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t length = sizeof(sa_family_t) + 15;
    if (serves) {
        bind(s, (struct sockaddr *)&name, length);
        listen(s, 1);
        s = accept(s, 0, 0);
    } else {
        while (connect(s, (struct sockaddr *)&name, length)) sched_yield();
    }
    return read(s, &word, 1) != 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "locks")) return both(forward, backward);
    if (!strcmp(what, "fork")) return reaps();
    if (!strcmp(what, "clients") || !strcmp(what, "client")) return speaks(what[6] == 's');
    if (!strcmp(what, "exec")) return execl("/proc/self/exe", argv[0], "locks", (char *)0);
    pthread_mutex_lock(&first);
    if (!strcmp(what, "crash")) return both(waits, crashes);
    if (!strcmp(what, "overflow")) return both(waits, overflows);
    if (!strcmp(what, "spins")) return both(waits, spins);
    pthread_mutex_unlock(&first);
    if (!strcmp(what, "counts")) return both(counts, backward);
    if (!strcmp(what, "deep")) return both(backward, deep);
    return 2;
}
