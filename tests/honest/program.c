/*
 * Programs for tests/tool/honest.rs.  program VARIANT
 *   long      threads that take a lock, then a child that computes for a long time
 *   handled   the same with handlers of SIGTERM and SIGSEGV
 *   ignored   the same with SIGTERM ignored
 *   paced     two threads of which one finds the other's work undone; before that it computes as long as the file "pace" says
 *   counted   fails whenever the number in the file "count" is even, and adds one to it
 *   slow      computes for very long the first two times that it is run with the file "count" at 0
 *   many      two threads take a lock 300,000 times each, then it fails
 *   swapped   fails in one of two ways, by whether the number in the file "count" is even
 */

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void compute(unsigned long millions)
{
    volatile unsigned long n = 0;
    for (unsigned long i = 0; i < millions * 1000000; i++)
        n++;
}

static unsigned long number(const char *file, int add)
{
    char text[32] = "";
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        abort();
    unsigned long n = strtoul(text, NULL, 10);
    if (add) {
        int len = snprintf(text, sizeof text, "%lu", n + 1);
        if (pwrite(fd, text, len, 0) != len)
            abort();
    }
    close(fd);
    return n;
}

static void *work(void *arg)
{
    pthread_mutex_lock(&m);
    done = 1;
    pthread_mutex_unlock(&m);
    return arg;
}

static void *work_on(void *arg)
{
    for (int i = 0; i < 300000; i++)
        work(NULL);
    return arg;
}

static void handler(int signal)
{
    (void)signal;
}

static void lasting(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, NULL);
    pid_t child = fork();
    if (child == 0) {
        compute(1000000);
        _exit(0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *variant = argc > 1 ? argv[1] : "";
    pthread_t t;

    if (strcmp(variant, "long") == 0) {
        lasting();
    } else if (strcmp(variant, "handled") == 0) {
        signal(SIGTERM, handler);
        signal(SIGSEGV, handler);
        lasting();
    } else if (strcmp(variant, "ignored") == 0) {
        signal(SIGTERM, SIG_IGN);
        lasting();
    } else if (strcmp(variant, "paced") == 0) {
        pthread_create(&t, NULL, work, NULL);
        compute(number("pace", 0));
        pthread_mutex_lock(&m);
        assert(done);
        pthread_mutex_unlock(&m);
        pthread_join(t, NULL);
    } else if (strcmp(variant, "counted") == 0) {
        pthread_create(&t, NULL, work, NULL);
        pthread_join(t, NULL);
        assert(number("count", 1) % 2);
    } else if (strcmp(variant, "slow") == 0) {
        pthread_create(&t, NULL, work, NULL);
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        pthread_join(t, NULL);
        if (number("count", 1) < 2)
            compute(1000000);
    } else if (strcmp(variant, "many") == 0) {
        pthread_create(&t, NULL, work_on, NULL);
        work_on(NULL);
        pthread_join(t, NULL);
        assert(!done);
    } else if (strcmp(variant, "swapped") == 0) {
        int even = number("count", 1) % 2 == 0;
        pthread_create(&t, NULL, work, NULL);
        pthread_join(t, NULL);
        assert(!even);
        abort();
    } else {
        return 2;
    }
    return 0;
}
