/* A server over named semaphores and its clients; see tests/tool/files.rs. */
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    sem_t *req = sem_open("/req", O_CREAT, 0600, 0), *ans = sem_open("/ans", O_CREAT, 0600, 0);
    if (argc > 1 && !strcmp(argv[1], "client")) {
        sem_post(req);
        if (argc > 2) sem_wait(ans);
        printf("client %d of %d in group %d done %s\n", getpid(), getppid(), getpgrp(), argc > 2 ? argv[2] : "");
        return 0;
    }
    for (;;) {
        sem_wait(req);
        if (argc > 1 && !strcmp(argv[1], "lazy")) continue;
        sem_post(ans);
    }
}
