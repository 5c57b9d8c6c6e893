/*
 * Functions of libc that give the same memory each time: what one thread has got is changed by a call of another one, between the call and the use.
 * ORDERED: call and use under a lock.
 */
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char what;

static int use(int old)
{
    time_t then = old ? 0 : 1000000000;
    struct tm given = { .tm_year = old ? 70 : 101, .tm_mday = 1 };

    switch (what) {
    case 'g': return gmtime(&then)->tm_year == (old ? 70 : 101);
    case 'l': return localtime(&then)->tm_year == (old ? 70 : 101);
    case 'a': return strcmp(asctime(&given) + 20, old ? "1970\n" : "2001\n") == 0;
    default: return strcmp(ctime(&then) + 20, old ? "1970\n" : "2001\n") == 0;
    }
}

static void *other(void *unused)
{
#ifdef ORDERED
    pthread_mutex_lock(&lock);
#endif
    use(1);
#ifdef ORDERED
    pthread_mutex_unlock(&lock);
#endif
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    what = argv[1][0];
    pthread_create(&thread, NULL, other, NULL);
#ifdef ORDERED
    pthread_mutex_lock(&lock);
#endif
    int right = use(0);
#ifdef ORDERED
    pthread_mutex_unlock(&lock);
#endif
    pthread_join(thread, NULL);
    assert(right);
    return 0;
}
