/* A thread that is cancelled in a write of more than a pipe takes. Fixed: what is there is read, whatever it is. "nothing", "part": takes it that
 * a cancelled write has written nothing, or a part. Buggy: it held a mutex that nobody unlocks then. */
#include "t.h"

#define ROOM 65536

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char data[ROOM + 4096];
static int p[2], buggy;

static void unlock(void *mutex)
{
    if (!buggy)
        MUST(pthread_mutex_unlock(mutex));
}

static void *writes(void *arg)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    MUST(pthread_mutex_lock(&m));
    pthread_cleanup_push(unlock, &m);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    write(p[1], data, sizeof data);
    pthread_cleanup_pop(1);
    return arg;
}

int main(int argc, char **argv)
{
    size_t got = 0;
    ssize_t n;
    void *result;
    pthread_t t;

    buggy = arg_is(argc, argv, "buggy");
    MUST(pipe(p));
    t = go(writes, NULL);
    MUST(pthread_cancel(t));
    MUST(pthread_join(t, &result));
    assert(result == PTHREAD_CANCELED);
    MUST(pthread_mutex_lock(&m));
    close(p[1]);
    while ((n = read(p[0], data, sizeof data)) > 0)
        got += n;
    assert(got == 0 || got == ROOM);
    if (arg_is(argc, argv, "nothing"))
        assert(got == 0);
    if (arg_is(argc, argv, "part"))
        assert(got == ROOM);
    return 0;
}
