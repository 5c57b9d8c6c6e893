/* Flags of the descriptions that the program was started with are set anew in each execution. */
#include "t.h"
#include <fcntl.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *locks(void *unused)
{
    MUST(pthread_mutex_lock(&lock));
    MUST(pthread_mutex_unlock(&lock));
    return unused;
}

int main(void)
{
    pthread_t t;
    assert(!(fcntl(0, F_GETFL) & O_NONBLOCK) && !(fcntl(1, F_GETFL) & O_NONBLOCK));
    t = go(locks, NULL);
    MUST(fcntl(0, F_SETFL, O_NONBLOCK));
    MUST(fcntl(1, F_SETFL, O_APPEND | O_NONBLOCK));
    locks(NULL);
    join(t);
    return 0;
}
