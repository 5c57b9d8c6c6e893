/*
 * Thread-local variables of one thread whose addresses another one has been given: the owner uses them by its own base. Between two uses of the
 * owner's comes the other one. With "fixed" the other one is waited for in between. "own": each thread uses its own, and memory of one that has
 * ended is another one's then.
 */
#include <assert.h>
#include <pthread.h>
#include <string.h>

static __thread volatile int number;
static __thread struct { char before; volatile char flag; } pair;
static __thread volatile long row[40];
static pthread_t thread;
static int fixed;

static void *sets(void *at)
{
    *(volatile char *)at = 5;
    return NULL;
}

static void *counts(void *unused)
{
    for (int n = 0; n < 3; n++)
        row[n + 1] = row[n] + 1;
    assert(row[3] == 3);
    number += row[3];
    assert(number == 3);
    return unused;
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    volatile int place = 7;

    fixed = argc > 2;
    if (strcmp(what, "own") == 0) {
        pthread_attr_t detached;

        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        for (int n = 0; n < 3; n++)
            pthread_create(&thread, &detached, counts, NULL);
        counts(NULL);
        return 0;
    }
    void *at = strcmp(what, "row") == 0 ? (void *)&row[place] : strcmp(what, "flag") == 0 ? (void *)&pair.flag : (void *)&number;
    pthread_create(&thread, NULL, sets, at);
    if (fixed)
        pthread_join(thread, NULL);
    if (strcmp(what, "row") == 0) {
        row[place] = 1;
        assert(row[place] == 1);
    } else if (strcmp(what, "flag") == 0) {
        pair.flag = 1;
        assert(pair.flag == 1);
    } else {
        number = 1;
        assert(number == 1);
    }
    if (!fixed)
        pthread_join(thread, NULL);
    return 0;
}
