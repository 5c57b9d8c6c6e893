// One thread has a bad pointer for what it reads, another wants to read too. A pipe keeps what there was no room for; a message
// is gone, and the other waits for ever.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t.h"

static int ends[2];

static void *reads_badly(void *unused) {
    (void)unused;
    check(read(ends[0], (char *)8, 1) == -1 && errno == EFAULT);
    return 0;
}

static void *reads(void *unused) {
    char byte = 0;
    (void)unused;
    check(read(ends[0], &byte, 1) == 1 && byte == 'x');
    return 0;
}

int main(int argc, char **argv) {
    int messages = argc > 1 && !strcmp(argv[1], "buggy");
    if (messages)
        check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    else
        check(pipe(ends) == 0);
    pthread_t bad, good;
    pthread_create(&bad, 0, reads_badly, 0);
    pthread_create(&good, 0, reads, 0);
    // A second one is for the one with the bad pointer, where it comes too late for the first.
    check(write(messages ? ends[1] : ends[1], "x", 1) == 1);
    pthread_join(good, 0);
    check(write(ends[1], "x", 1) == 1);
    pthread_join(bad, 0);
    return 0;
}
