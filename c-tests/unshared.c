/*
 * Objects that one thread alone uses.  unshared VARIANT
 *   many    four threads, each a thousand critical sections of a mutex of its own around two of a shared one
 *   few     the same with two sections of its own, small enough for a search without reduction
 *   rare    a mutex that is used by the second thread only if the first one comes late, and then in crossing order
 *   handed  main uses a mutex, then a thread that it creates, then, having joined it, main again
 *   heap    each thread makes, uses and destroys a mutex of its own in memory that the next one gets again
 *   fork    a child gets a copy of a mutex that another thread of its parent may hold at that moment
 *   loop    a thread that never comes back from the critical sections of its own mutex
 *   count   an atomic counter's lock that is never waited for; what it protects is printed
 */

#include "t.h"

#define THREADS 4

static pthread_mutex_t own[THREADS], common = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static long sections = 2, entered[THREADS], total;
static int late, lines;

static void section(pthread_mutex_t *m, long *counter)
{
    pthread_mutex_lock(m);
    ++*counter;
    pthread_mutex_unlock(m);
}

static void *worker(void *arg)
{
    long self = (long)arg;

    for (long i = 0; i < sections; i++) {
        section(&own[self], &entered[self]);
        if (i == sections / 2)
            section(&common, &total);
    }
    return NULL;
}

static void *first(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&common);
    late = 1;
    pthread_mutex_unlock(&common);
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *second(void *unused)
{
    int wrong;

    (void)unused;
    pthread_mutex_lock(&common);
    wrong = !late;
    pthread_mutex_unlock(&common);
    if (wrong) {
        pthread_mutex_lock(&b);
        pthread_mutex_lock(&a);
        pthread_mutex_unlock(&a);
        pthread_mutex_unlock(&b);
    }
    return NULL;
}

static void *user(void *unused)
{
    (void)unused;
    section(&a, &total);
    return NULL;
}

static void *heap_user(void *unused)
{
    pthread_mutex_t *m = malloc(sizeof *m);

    (void)unused;
    pthread_mutex_init(m, NULL);
    section(m, &entered[0]);
    pthread_mutex_destroy(m);
    free(m);
    section(&common, &total);
    return NULL;
}

static void *holder(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&a);
    section(&common, &total);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *endless(void *unused)
{
    (void)unused;
    section(&common, &total);
    for (;;)
        section(&a, &entered[0]);
    return NULL;
}

static void *logger(void *arg)
{
    (void)arg;
    section(&common, &total);
    pthread_mutex_lock(&log_lock);
    lines++;
    pthread_mutex_unlock(&log_lock);
    return NULL;
}

static void run(void *(*one)(void *), void *(*two)(void *))
{
    pthread_t t = go(one, NULL), u = go(two, NULL);

    join(t);
    join(u);
}

int main(int argc, char **argv)
{
    pthread_t t[THREADS];
    const char *variant = argc > 1 ? argv[1] : "few";
    int n = THREADS;

    if (strcmp(variant, "many") == 0 || strcmp(variant, "few") == 0) {
        if (*variant == 'm')
            sections = 1000;
        else
            n = 2;
        for (long i = 0; i < n; i++)
            pthread_mutex_init(&own[i], NULL);
        for (long i = 0; i < n; i++)
            t[i] = go(worker, (void *)i);
        for (long i = 0; i < n; i++)
            join(t[i]);
    } else if (strcmp(variant, "rare") == 0) {
        run(first, second);
    } else if (strcmp(variant, "handed") == 0) {
        t[0] = go(logger, NULL);
        section(&a, &total);
        t[1] = go(user, NULL);
        join(t[1]);
        section(&a, &total);
        join(t[0]);
    } else if (strcmp(variant, "heap") == 0) {
        run(heap_user, heap_user);
    } else if (strcmp(variant, "fork") == 0) {
        t[0] = go(holder, NULL);
        if (fork() == 0) {
            section(&a, &total);
            _exit(0);
        }
        join(t[0]);
        wait(NULL);
    } else if (strcmp(variant, "loop") == 0) {
        t[0] = go(endless, NULL);
        section(&common, &total);
        join(t[0]);
    } else {
        run(logger, logger);
    }
    return 0;
}
