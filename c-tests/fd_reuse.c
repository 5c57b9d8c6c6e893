/* The number of a descriptor that is closed is given again, by open, pipe, dup, accept: who still has the number writes into something else.
 * "pipe", "dup2", "file": the byte ends up where it was not meant to; "fixed": a mutex keeps the two apart. */
#include "t.h"
#include <fcntl.h>

static int log_ends[2], other[2];
static int number;
static const char *how;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *logs(void *arg)
{
    pthread_mutex_lock(&mutex);
    int open = number;
    if (strcmp(how, "fixed") != 0)
        pthread_mutex_unlock(&mutex);
    if (open >= 0)
        (void)!write(open, "x", 1);
    if (strcmp(how, "fixed") == 0)
        pthread_mutex_unlock(&mutex);
    return arg;
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "fixed";
    int file = open("/dev/null", O_RDONLY);
    MUST(pipe(log_ends));
    number = log_ends[1];
    pthread_t t = go(logs, NULL);
    pthread_mutex_lock(&mutex);
    int old = number;
    number = -1;
    if (strcmp(how, "dup2") == 0) {
        MUST(pipe(other));
        MUST(dup2(other[1], old) != old);
    } else {
        MUST(close(old));
        /* A pipe gets this number for reading and the other one for writing. */
        if (strcmp(how, "file") != 0)
            MUST(close(file));
        if (strcmp(how, "file") == 0) {
            other[0] = open("secret", O_CREAT | O_TRUNC | O_RDWR, 0600);
            other[1] = other[0];
        } else {
            MUST(pipe(other));
        }
    }
    pthread_mutex_unlock(&mutex);
    join(t);
    if (strcmp(how, "file") == 0) {
        assert(lseek(other[1], 0, SEEK_END) == 0);
        return 0;
    }
    char c;
    MUST(fcntl(other[0], F_SETFL, O_NONBLOCK));
    assert(read(other[0], &c, 1) == -1 && errno == EAGAIN);
    return 0;
}
