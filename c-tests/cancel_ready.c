/*
 * A thread is asked to end before it calls something that need not wait and is a cancellation point all the same.  cancel_ready VARIANT
 *   read, write, wait, send   of a pipe, an eventfd, a semaphore, a message queue: nothing may have been done
 *   test      pthread_testcancel
 *   open, file   open, or write to a file, after the other one was told that it is about to
 *   off       cancellation is switched off
 */
#include "t.h"
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/msg.h>

static const char *what;
static int ends[2], event, queue, done;
static sem_t sem, told;

static void *calls(void *arg)
{
    struct { long type; char text[1]; } message = { 1, "x" };
    uint64_t one = 1;
    char byte;
    if (strcmp(what, "off") == 0) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (strcmp(what, "read") == 0 || strcmp(what, "off") == 0) assert(read(ends[0], &byte, 1) == 1);
    if (strcmp(what, "write") == 0) assert(write(event, &one, 8) == 8);
    if (strcmp(what, "wait") == 0) sem_wait(&sem);
    if (strcmp(what, "send") == 0) msgsnd(queue, &message, 1, 0);
    if (strcmp(what, "test") == 0) pthread_testcancel();
    if (strcmp(what, "open") == 0 || strcmp(what, "file") == 0) {
        int file = strcmp(what, "file") == 0 ? open("/dev/null", O_WRONLY) : -1;
        sem_post(&told);
        if (file < 0)
            open("/dev/null", O_RDONLY);
        else
            assert(write(file, "x", 1) == 1);
    }
    done = 1;
    return arg;
}

int main(int argc, char **argv)
{
    (void)argc;
    what = argv[1];
    MUST(pipe(ends));
    event = eventfd(0, 0);
    queue = msgget(IPC_PRIVATE, 0600);
    sem_init(&sem, 0, 1);
    sem_init(&told, 0, 0);
    assert(write(ends[1], "x", 1) == 1);
    pthread_t other = go(calls, NULL);
    if (strcmp(what, "open") == 0 || strcmp(what, "file") == 0) sem_wait(&told);
    pthread_cancel(other);
    pthread_join(other, NULL);
    msgctl(queue, IPC_RMID, NULL);
    assert(done);
    return 0;
}
