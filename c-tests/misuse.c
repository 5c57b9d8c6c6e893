/*
 * What POSIX leaves undefined or forbids; the argument says which:
 *   unlock   a mutex is unlocked by a thread that does not hold it
 *   destroy  a mutex is destroyed while another thread holds it
 *   dead     a destroyed mutex is locked
 *   cond     a condition variable is destroyed while a thread waits on it
 *   relock   a normal mutex is locked again by its owner, which waits for itself
 */
#include "t.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static const char *what;

static void *holder(void *unused)
{
    MUST(pthread_mutex_lock(&m));
    if (strcmp(what, "relock") == 0)
        MUST(pthread_mutex_lock(&m));
    if (strcmp(what, "cond") == 0)
        MUST(pthread_cond_wait(&c, &m));
    MUST(pthread_mutex_unlock(&m));
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t;

    what = argc > 1 ? argv[1] : "";
    t = go(holder, NULL);
    if (strcmp(what, "unlock") == 0) {
        pthread_mutex_unlock(&m);
    } else if (strcmp(what, "destroy") == 0) {
        pthread_mutex_destroy(&m);
    } else if (strcmp(what, "cond") == 0) {
        MUST(pthread_mutex_lock(&m));
        MUST(pthread_mutex_unlock(&m));
        pthread_cond_destroy(&c);
    }
    join(t);
    if (strcmp(what, "dead") == 0) {
        MUST(pthread_mutex_destroy(&m));
        pthread_mutex_lock(&m);
    }
    return 0;
}
