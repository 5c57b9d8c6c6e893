/* Statically initialized mutexes, each first met late and on some paths only.  No bug. */
#include "t.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t late[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static int turn;

static void *work(void *unused)
{
    int mine;

    MUST(pthread_mutex_lock(&first));
    mine = turn++;
    MUST(pthread_mutex_unlock(&first));
    if (unused == NULL || mine == 0) {
        MUST(pthread_mutex_lock(&late[mine]));
        MUST(pthread_mutex_unlock(&late[mine]));
    }
    return NULL;
}

int main(void)
{
    pthread_t t = go(work, NULL);

    work(&turn);
    join(t);
    return 0;
}
