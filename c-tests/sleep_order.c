/* Two threads that only sleeps keep apart: one takes the locks the other way round a second later. Real time orders nothing.
 * "sleepers": five threads that sleep and share nothing, which is one order. */
#include "t.h"
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int buggy;

static void *early(void *arg)
{
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return arg;
}

static void *late(void *arg)
{
    sleep(1);
    pthread_mutex_lock(buggy ? &b : &a);
    pthread_mutex_lock(buggy ? &a : &b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return arg;
}

static void *sleeper(void *arg)
{
    sleep(1);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t[5];
    int n = 2;

    buggy = arg_is(argc, argv, "buggy");
    if (arg_is(argc, argv, "sleepers")) {
        for (n = 0; n < 5; n++)
            t[n] = go(sleeper, NULL);
    } else {
        t[0] = go(early, NULL);
        t[1] = go(late, NULL);
    }
    for (int i = 0; i < n; i++)
        join(t[i]);
    return 0;
}
