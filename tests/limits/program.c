// Watches a file by inotify. "alone": makes the event itself, then reads it. "reader": a thread waits in read for what another
// thread does. "poll": the same with poll, over a pipe too. "assert": a bug that the order of two threads decides, beside all that.
// "strays": in the first executions an assertion fails, in later ones threads
// yield where the schedule has them lock, since a real file decides that.
// "unordered": a thread reads memory that another one writes, with no order, and locks by what it reads.
// "ring": asks for an io_uring and says whether there is one.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../../shim/include/vs.h"

static int watch, ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int first;

static void touch(void) {
    int fd = open("watched", O_WRONLY | O_APPEND);
    if (write(fd, "x", 1) != 1) _exit(9);
    close(fd);
}

static int heard(void) {
    char events[4096];
    ssize_t n = read(watch, events, sizeof events);
    return n >= (ssize_t)sizeof(struct inotify_event) && ((struct inotify_event *)events)->mask & IN_MODIFY;
}

static void *write_file(void *order) {
    pthread_mutex_lock(&lock);
    if (!first) first = 2;
    pthread_mutex_unlock(&lock);
    touch();
    return order;
}

static void *lock_once(void *argument) {
    pthread_mutex_lock(&lock);
    first++;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *nothing(void *argument) {
    sched_yield();
    return argument;
}

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static volatile int written;

static void *writes(void *argument) {
    lock_once(argument);
    written = 1;
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    return argument;
}

static void *reads(void *argument) {
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    return written ? lock_once(argument) : nothing(argument);
}

static int unordered(void) {
    pthread_t threads[2];
    pthread_create(threads, 0, writes, 0);
    pthread_create(threads + 1, 0, reads, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}

// The kth execution does something else, for k > 9.
static int stray(void) {
    pthread_t threads[3];
    int fd = open("count", O_RDWR | O_CREAT | O_APPEND, 0600);
    if (write(fd, "x", 1) != 1) return 9;
    int more = lseek(fd, 0, SEEK_END) > 9;
    close(fd);
    int way = VS_toss(9);
    if (more) sched_yield();
    for (int i = 0; i < 3; i++) pthread_create(threads + i, 0, more ? nothing : lock_once, 0);
    VS_assert(way != 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "alone";
    if (!strcmp(how, "strays")) return stray();
    if (!strcmp(how, "unordered")) return unordered();
    if (!strcmp(how, "ring")) {
        char params[120] = "";
        return syscall(SYS_io_uring_setup, 4, params) >= 0 ? 7 : errno == ENOSYS ? 5 : 6;
    }
    watch = inotify_init1(IN_CLOEXEC);
    if (watch < 0 || inotify_add_watch(watch, "watched", IN_MODIFY) < 0 || pipe(ends)) return 8;
    if (!strcmp(how, "alone")) {
        touch();
        return heard() ? 0 : 1;
    }
    pthread_t thread;
    pthread_create(&thread, 0, write_file, 0);
    if (!strcmp(how, "poll")) {
        struct pollfd both[2] = {{ends[0], POLLIN, 0}, {watch, POLLIN, 0}};
        if (poll(both, 2, -1) != 1 || both[0].revents || both[1].revents != POLLIN) return 2;
    }
    if (!heard()) return 3;
    pthread_mutex_lock(&lock);
    if (!first) first = 1;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    if (!strcmp(how, "assert")) {
        pthread_create(&thread, 0, write_file, 0);
        pthread_mutex_lock(&lock);
        int mine = first;
        first = 0;
        pthread_mutex_unlock(&lock);
        pthread_join(thread, 0);
        assert(mine == 0 || first == 2);
    }
    return 0;
}
