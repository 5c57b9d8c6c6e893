/* A thread ends, and its stack with it: others still use an object there, in no order with that ("late"), after it was joined ("joined"), or before they let it go
 * ("right"); a thread-local variable ("local"). "again": the next thread has the same stack, and objects of its own there. */
#include "t.h"

struct request {
    sem_t done;
    int value;
};

static struct request *_Atomic request;
static int *_Atomic number;
static __thread int own = 5;
static sem_t there, over;
static int awaits;

static void *asks(void *unused)
{
    struct request mine = {.value = 1};
    MUST(sem_init(&mine.done, 0, 0));
    request = &mine;
    MUST(sem_post(&there));
    if (awaits)
        MUST(sem_wait(&mine.done));
    return unused;
}

static void *shows(void *unused)
{
    number = &own;
    MUST(sem_post(&there));
    return unused;
}

static void answers(void)
{
    MUST(sem_wait(&there));
    request->value = 2;
    MUST(sem_post(&request->done));
}

int main(int argc, char **argv)
{
    MUST(sem_init(&there, 0, 0) || sem_init(&over, 0, 0));
    if (arg_is(argc, argv, "local")) {
        pthread_t thread = go(shows, NULL);
        MUST(sem_wait(&there));
        int n = *number;
        join(thread);
        return n == 4;
    }
    awaits = arg_is(argc, argv, "right") || arg_is(argc, argv, "again");
    for (int n = 0; n < (arg_is(argc, argv, "again") ? 3 : 1); n++) {
        pthread_t thread = go(asks, NULL);
        if (arg_is(argc, argv, "joined"))
            join(thread);
        answers();
        if (!arg_is(argc, argv, "joined"))
            join(thread);
    }
    return 0;
}
