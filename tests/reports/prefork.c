/* A pre-forking daemon: children guard a shared counter by a SysV semaphore; the parent kills one that may hold it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

static int set;
static int *served;

static void change(int by) {
    struct sembuf op = {0, by, 0}; /* without SEM_UNDO */
    while (semop(set, &op, 1) != 0) {}
}

static void serve(void) {
    change(-1);
    ++*served;
    change(1);
    exit(0);
}

int main(void) {
    set = semget(IPC_PRIVATE, 1, 0600);
    semctl(set, 0, SETVAL, 1);
    served = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[2];
    for (int i = 0; i < 2; i++) if ((children[i] = fork()) == 0) serve();
    kill(children[0], SIGKILL); /* the watchdog is impatient */
    for (int i = 0; i < 2; i++) waitpid(children[i], NULL, 0);
    printf("served %d\n", *served);
    semctl(set, 0, IPC_RMID);
    return 0;
}
