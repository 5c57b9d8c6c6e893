/* Four processes of two threads each pass a token round through shared memory; what is printed must not depend on anything. */
#include "t.h"

#define PROCESSES 4
#define ROUNDS 5

static sem_t *s;
static int *token, here;

static void *pass(void *arg)
{
    int place = here * 2 + (arg != NULL);

    for (int i = 0; i < ROUNDS; i++) {
        MUST(sem_wait(&s[place]));
        *token = *token * 3 % 1000003 + place;
        MUST(sem_post(&s[(place + 1) % (2 * PROCESSES)]));
    }
    return NULL;
}

static void process(void)
{
    pthread_t t = go(pass, &here);

    pass(NULL);
    join(t);
}

int main(void)
{
    pid_t pid[PROCESSES];

    s = shared(2 * PROCESSES * sizeof *s);
    token = shared(sizeof *token);
    *token = 1;
    for (int i = 0; i < 2 * PROCESSES; i++)
        MUST(sem_init(&s[i], 1, i == 0));
    for (here = 1; here < PROCESSES; here++)
        pid[here] = fork_run(process);
    here = 0;
    process();
    for (int i = 1; i < PROCESSES; i++)
        assert(reap(pid[i]) == 0);
    printf("token %d\n", *token);
    return 0;
}
