/* Threads with the smallest stack that there may be use what needs room: the layer that vsrun puts below must do with what is left.
 *
 *   small_stack          a thread polls, selects, opens, writes, reads, locks and takes a semaphore on 16 KiB
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static int set;
static const char *const name = "small_stack.data";

static void waits_for_input(void)
{
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    fd_set reads;
    struct timeval none = {0, 0};
    char byte;

    FD_ZERO(&reads);
    FD_SET(ends[0], &reads);
    assert(select(ends[0] + 1, &reads, NULL, NULL, &none) >= 0);
    assert(poll(&one, 1, -1) == 1);
    assert(read(ends[0], &byte, 1) == 1);
}

static void uses_a_file(void)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat status;
    char text[8] = "";
    int fd = open(name, O_RDWR | O_CREAT, 0600);

    assert(fd >= 0);
    assert(fcntl(fd, F_SETLKW, &all) == 0);
    assert(pread(fd, text, sizeof text, 0) >= 0);
    assert(pwrite(fd, "word", 4, 0) == 4);
    assert(fstat(fd, &status) == 0 && status.st_size == 4);
    assert(stat(name, &status) == 0 && access(name, R_OK) == 0);
    assert(close(fd) == 0);
}

static void *uses_much(void *arg)
{
    struct sembuf take = {0, -1, 0}, give = {0, 1, 0};
    void *memory;

    (void)arg;
    waits_for_input();
    pthread_mutex_lock(&lock);
    uses_a_file();
    assert(rename(name, "small_stack.other") == 0);
    pthread_mutex_unlock(&lock);
    assert(semop(set, &take, 1) == 0 && semop(set, &give, 1) == 0);
    memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED && munmap(memory, 4096) == 0);
    return NULL;
}

int main(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    struct stat status;

    assert(pipe(ends) == 0);
    set = semget(IPC_PRIVATE, 1, 0600);
    assert(set >= 0 && semctl(set, 0, SETVAL, 1) == 0);
    assert(pthread_attr_init(&attr) == 0);
    assert(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN) == 0);
    assert(pthread_create(&thread, &attr, uses_much, NULL) == 0);
    assert(write(ends[1], "a", 1) == 1);
    /* Makes the file one that both use. */
    assert(stat(name, &status) != 0 || status.st_size == 0 || status.st_size == 4);
    assert(pthread_join(thread, NULL) == 0);
    assert(semctl(set, 0, IPC_RMID) == 0);
    return 0;
}
