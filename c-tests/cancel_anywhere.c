/* Requests to end a thread that strike it anywhere: one that has come before strikes in pthread_setcanceltype; later ones between any two
 * calls, but for the time while they are switched off.  The argument says after what the thread is not to be over. */
#include "t.h"

static sem_t ready, looked;
static int done;

static void *only_sets(void *unused)
{
    int old;
    (void)unused;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    return NULL;
}

static void *works(void *unused)
{
    int old;
    (void)unused;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    sem_post(&ready);
    done = 1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    sem_post(&looked);
    done = 2;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    done = 3;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
    done = 4;
    return NULL;
}

int main(int argc, char **argv)
{
    void *result;
    pthread_t t;
    MUST(sem_init(&ready, 0, 0));
    MUST(sem_init(&looked, 0, 0));
    if (arg_is(argc, argv, "set")) {
        t = go(only_sets, NULL);
        MUST(pthread_cancel(t));
        MUST(pthread_join(t, &result));
        assert(result != PTHREAD_CANCELED);
        return 0;
    }
    t = go(works, NULL);
    MUST(sem_wait(&ready));
    MUST(pthread_cancel(t));
    MUST(pthread_join(t, &result));
    if (arg_is(argc, argv, "on")) assert(done != 2 || result != PTHREAD_CANCELED);
    if (arg_is(argc, argv, "between")) assert(done != 3 || result != PTHREAD_CANCELED);
    if (arg_is(argc, argv, "late")) assert(done < 4);
    if (arg_is(argc, argv, "fixed")) assert(done <= 4);
    return 0;
}
