// A thread uses memory that another one has freed.
#include <pthread.h>
#include <stdlib.h>

struct job { int n; };
static struct job *job;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static struct job *make(int n)
{
    struct job *j = malloc(sizeof *j);
    j->n = n;
    return j;
}

static void *finisher(void *arg)
{
    pthread_mutex_lock(&m);
    free(job);
    pthread_mutex_unlock(&m);
    return arg;
}

static void *reader(void *arg)
{
    pthread_mutex_lock(&m);
    int n = job->n;
    pthread_mutex_unlock(&m);
    return arg + n;
}

int main(void)
{
    pthread_t a, b;
    job = make(3);
    pthread_create(&a, 0, finisher, 0);
    pthread_create(&b, 0, reader, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
