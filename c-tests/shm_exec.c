/* A segment that is attached with SHM_EXEC holds code. Where memory is watched, that code is not, which is said once others may reach it. */
#include "t.h"
#include <sys/shm.h>

static void *calls(void *code)
{
    return (void *)(long)((int (*)(void))code)();
}

int main(void)
{
    /* mov $42, %eax; ret */
    static const unsigned char CODE[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
    pthread_t thread;
    void *result;
    int segment = shmget(IPC_PRIVATE, 4096, 0600);
    char *code = shmat(segment, NULL, SHM_EXEC);
    MUST(segment < 0 || code == (void *)-1);
    memcpy(code, CODE, sizeof CODE);
    MUST(pthread_create(&thread, NULL, calls, code));
    MUST(pthread_join(thread, &result));
    assert((long)result == 42);
    MUST(shmctl(segment, IPC_RMID, NULL));
    return 0;
}
