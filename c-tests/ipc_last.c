/* Who used an IPC object last: two processes do the same, and the kernel tells who came second. Each may have. */
#include "t.h"
#include <sys/msg.h>
#include <sys/shm.h>

static int id;
static const char *what;

static int is(const char *word)
{
    return strcmp(what, word) == 0;
}

static void one(void)
{
    struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
    struct { long type; char text[4]; } message = {1, ""};

    if (is("up"))
        MUST(semop(id, &up, 1));
    if (is("down"))
        MUST(semop(id, &down, 1));
    if (is("send"))
        MUST(msgsnd(id, &message, 4, 0));
    if (is("receive"))
        assert(msgrcv(id, &message, 4, 0, 0) == 4);
    if (is("attach"))
        assert(shmat(id, NULL, 0) != (void *)-1);
}

static pid_t last(void)
{
    struct msqid_ds queue;
    struct shmid_ds segment;

    if (is("attach")) {
        MUST(shmctl(id, IPC_STAT, &segment));
        return segment.shm_lpid;
    }
    if (is("send") || is("receive")) {
        MUST(msgctl(id, IPC_STAT, &queue));
        return is("send") ? queue.msg_lspid : queue.msg_lrpid;
    }
    return semctl(id, 0, GETPID);
}

int main(int argc, char **argv)
{
    struct { long type; char text[4]; } message = {1, ""};
    pid_t first, second;
    union { int val; } four = {4};

    if (argc < 2)
        return 2;
    what = argv[1];
    if (is("attach")) {
        id = shmget(IPC_PRIVATE, 4096, 0600);
    } else if (is("send") || is("receive")) {
        id = msgget(IPC_PRIVATE, 0600);
        for (int i = 0; i < 2 && is("receive"); i++)
            MUST(msgsnd(id, &message, 4, 0));
    } else {
        id = semget(IPC_PRIVATE, 1, 0600);
        MUST(semctl(id, 0, SETVAL, four));
    }
    assert(id >= 0);
    first = fork_run(one);
    second = fork_run(one);
    assert(waitpid(first, NULL, 0) == first);
    assert(waitpid(second, NULL, 0) == second);
    assert(last() == (argc > 2 ? first : second));
    return 0;
}
