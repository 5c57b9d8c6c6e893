/* Where somebody asks who waits for a semaphore, one that sleeps and can go on goes before all others, also before a semop that would not
 * have to wait: an order in which it would have to is none. Of the two that take from [1] one waits for ever. */
#include "t.h"
#include <sys/sem.h>

static int set;

static void add(int number, int amount)
{
    struct sembuf operation = { (unsigned short)number, (short)amount, 0 };
    MUST(semop(set, &operation, 1));
}

static void *takes(void *unused)
{
    add(0, -1);
    add(1, -1);
    add(0, -1);
    return unused;
}

int main(void)
{
    pthread_t thread;
    set = semget(IPC_PRIVATE, 2, 0600);
    assert(set >= 0);
    MUST(semctl(set, 0, SETVAL, 2));
    pid_t child = fork();
    if (child == 0) {
        add(1, -1);
        _exit(0);
    }
    MUST(pthread_create(&thread, NULL, takes, NULL));
    add(1, 1);
    assert(semctl(set, 0, GETZCNT) == 0);
    assert(semctl(set, 0, GETVAL) >= 0);
    MUST(pthread_join(thread, NULL));
    assert(waitpid(child, NULL, 0) == child);
    return 0;
}
