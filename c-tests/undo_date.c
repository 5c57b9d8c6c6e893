/* The end of a process counts as a semop on each set on which it has used SEM_UNDO, also where the semop failed or a SETVAL has cleared
 * what is to be undone since: sem_otime is set. "failed": one that fails; "cleared": one that is undone by SETVAL; "plain": one without
 * SEM_UNDO that fails, which leaves the time as it is. */
#include "t.h"
#include <sys/sem.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
    int set = semget(IPC_PRIVATE, 1, 0600), cleared = arg_is(argc, argv, "cleared");
    struct semid_ds before, after;
    time_t *first = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sembuf take = { 0, (short)(cleared ? 1 : -1), IPC_NOWAIT };
    assert(set >= 0 && first != MAP_FAILED);
    if (!arg_is(argc, argv, "plain"))
        take.sem_flg |= SEM_UNDO;
    pid_t child = fork();
    if (child == 0) {
        assert(semop(set, &take, 1) == (cleared ? 0 : -1));
        if (cleared) {
            MUST(semctl(set, 0, SETVAL, 5));
            MUST(semctl(set, 0, IPC_STAT, &before));
            *first = before.sem_otime;
            sleep(2);
        }
        _exit(0);
    }
    assert(waitpid(child, NULL, 0) == child);
    MUST(semctl(set, 0, IPC_STAT, &after));
    int value = semctl(set, 0, GETVAL);
    MUST(semctl(set, 0, IPC_RMID));
    assert(value == (cleared ? 5 : 0));
    /* What a run natively shows every time. */
    if (arg_is(argc, argv, "plain"))
        assert(after.sem_otime == 0);
    else
        assert(after.sem_otime > *first);
    return 0;
}
