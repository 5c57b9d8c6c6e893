/* A program that logs, on a machine whose syslogd is none of the program's: nobody listens, and to find that out is no operation,
   neither in a search nor in a single execution nor in its replay. The count is asserted wrongly. */
#include <assert.h>
#include <pthread.h>
#include <syslog.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;

static void *count(void *unused)
{
    syslog(LOG_INFO, "counting");
    pthread_mutex_lock(&m);
    n++;
    pthread_mutex_unlock(&m);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(n == 1);
    return 0;
}
