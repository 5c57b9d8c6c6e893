/* Bugs whose schedules can be shorter than a random search finds them, and whose turning point is known. */
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <vs.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, quiet = PTHREAD_MUTEX_INITIALIZER;
static int account, ready;
static volatile int counter;

static int noisy = 1;

/* Steps that the bug has nothing to do with. */
static void noise(int times)
{
    while (noisy && times--) {
        pthread_mutex_lock(&quiet);
        pthread_mutex_unlock(&quiet);
    }
}

static void *crossed(void *which)
{
    pthread_mutex_t *first = which ? &a : &b, *second = which ? &b : &a;
    noise(3);
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return 0;
}

static void *bystander(void *unused)
{
    noise(8);
    return unused;
}

/* The balance is read under the lock, and written under it, but not under one. */
static void *deposit(void *unused)
{
    noise(2);
    pthread_mutex_lock(&a);
    int was = account;
    pthread_mutex_unlock(&a);
    noise(2);
    pthread_mutex_lock(&a);
    account = was + 1;
    pthread_mutex_unlock(&a);
    return unused;
}

static void *count(void *unused)
{
    counter = counter + 1;
    return unused;
}

/* What is written before the lock is taken is ordered only if whoever reads it takes the lock later. */
static void *publishes(void *unused)
{
    counter = 1;
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *reads(void *unused)
{
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    ready = counter;
    return unused;
}

/* It only looks, and expects what need not be so. */
static void *looks(void *unused)
{
    noise(2);
    pthread_mutex_lock(&b);
    assert(!ready);
    pthread_mutex_unlock(&b);
    return unused;
}

static void *sets(void *unused)
{
    noise(2);
    pthread_mutex_lock(&b);
    ready = VS_toss(2);
    pthread_mutex_unlock(&b);
    return unused;
}

static void two(void *(*one)(void *), void *(*other)(void *))
{
    pthread_t t[3];
    pthread_create(&t[0], 0, one, &a);
    pthread_create(&t[1], 0, other, 0);
    pthread_create(&t[2], 0, bystander, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    noisy = strcmp(what, "crossed");
    if (!strcmp(what, "deadlock") || !strcmp(what, "crossed"))
        two(crossed, crossed);
    if (!strcmp(what, "assertion"))
        two(sets, looks);
    if (!strcmp(what, "update")) {
        two(deposit, deposit);
        assert(account == 2);
    }
    if (!strcmp(what, "always")) {
        two(deposit, deposit);
        assert(account > 2);
    }
    if (!strcmp(what, "memory")) {
        two(count, count);
        assert(counter == 2);
    }
    if (!strcmp(what, "published"))
        two(publishes, reads);
    return 0;
}
