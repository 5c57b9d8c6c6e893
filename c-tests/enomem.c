/*
 * Allocations that fail (--inject enomem), at most two in each thread.  enomem VARIANT
 *   malloc      a list is built without a look at what malloc gives
 *   malloc-ok   with one; what was built is given back
 *   copy        strdup inside of libc fails, and nobody looks
 *   copy-ok     somebody does
 *   thread      a thread whose creation failed is waited for
 *   thread-ok   the work is done without it
 *   every       each function that allocates fails with the right error number, and changes nothing
 *   second      only the second of two threads' allocations is not looked at
 */

#include "t.h"
#include <malloc.h>

struct node {
    struct node *next;
    int value;
};

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;

/* Before main nothing fails. */
static void *early;
__attribute__((constructor)) static void before(void)
{
    early = malloc(100);
    if (!early)
        abort();
}

static void build(int look)
{
    struct node *list = NULL;

    for (int i = 0; i < 3; i++) {
        struct node *n = malloc(sizeof *n);
        if (look && !n) {
            assert(errno == ENOMEM);
            break;
        }
        n->next = list;
        n->value = i;
        list = n;
    }
    while (list) {
        struct node *next = list->next;
        free(list);
        list = next;
    }
}

static void copy(int look)
{
    volatile char *text = strdup("some text");

    if (look && !text)
        assert(errno == ENOMEM);
    else
        text[0] = 'S';
    free((char *)text);
}

static void *work(void *arg)
{
    MUST(pthread_mutex_lock(&m));
    done = 1;
    MUST(pthread_mutex_unlock(&m));
    return arg;
}

static void thread(int look)
{
    pthread_t t;
    int error = pthread_create(&t, NULL, work, NULL);

    assert(error == 0 || error == EAGAIN);
    if (look && error)
        work(NULL);
    else if (error == 0)
        join(t);
    assert(done);
}

static int failures;

static void seen(void *p, size_t alignment)
{
    if (!p) {
        assert(errno == ENOMEM);
        failures++;
    } else
        assert((uintptr_t)p % alignment == 0);
    errno = 0;
    free(p);
}

static void every(void)
{
    void *p = NULL;

    errno = 0;
    seen(malloc(10), 16);
    seen(calloc(3, 7), 16);
    seen(aligned_alloc(64, 128), 64);
    seen(memalign(256, 3), 256);
    seen(valloc(5), 4096);
    seen(pvalloc(5), 4096);
    int error = posix_memalign(&p, 512, 9);
    assert(error == 0 || error == ENOMEM);
    assert(errno == 0 && (error == 0) == (p != NULL));
    failures += error != 0;
    free(p);
    char *old = early, *grown;
    strcpy(old, "kept");
    grown = realloc(old, 5000);
    failures += !grown;
    old = grown ? grown : old;
    assert(strcmp(old, "kept") == 0);
    grown = reallocarray(old, 100, 100);
    failures += !grown;
    old = grown ? grown : old;
    assert(strcmp(old, "kept") == 0);
    errno = 0;
    volatile size_t all = (size_t)-1;
    assert(reallocarray(old, all, 100) == NULL && errno == ENOMEM);
    assert(malloc(0) != NULL);
    free(old);
    assert(failures <= 2);
}

static void *careless(void *arg)
{
    volatile int *p = malloc(sizeof *p);
    MUST(pthread_mutex_lock(&m));
    if (arg || p)
        *p = 1;
    MUST(pthread_mutex_unlock(&m));
    free((int *)p);
    return NULL;
}

static void second(void)
{
    pthread_t one, two;

    if (pthread_create(&one, NULL, careless, NULL))
        return;
    if (pthread_create(&two, NULL, careless, "x") == 0)
        join(two);
    join(one);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "malloc")) build(0);
    else if (arg_is(argc, argv, "malloc-ok")) build(1);
    else if (arg_is(argc, argv, "copy")) copy(0);
    else if (arg_is(argc, argv, "copy-ok")) copy(1);
    else if (arg_is(argc, argv, "thread")) thread(0);
    else if (arg_is(argc, argv, "thread-ok")) thread(1);
    else if (arg_is(argc, argv, "every")) every();
    else if (arg_is(argc, argv, "second")) second();
    else return 2;
    return 0;
}
