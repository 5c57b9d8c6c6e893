/* libc has a lock of its own in each thread: it holds that of a thread which it makes until it has set its processors or its policy, and takes it while it
   asks about a thread's policy. What nobody can tell is no step; what threads can tell comes in each order. */
#define _GNU_SOURCE
#include "t.h"
#include <errno.h>
#include <sched.h>
#include <string.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t first;
static int x;

static void *counts(void *arg)
{
    MUST(pthread_mutex_lock(&m));
    x++;
    MUST(pthread_mutex_unlock(&m));
    return arg;
}

static void barred(pthread_attr_t *attr, int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    MUST(pthread_attr_setaffinity_np(attr, sizeof set, &set));
}

static void by_policy(pthread_attr_t *attr)
{
    struct sched_param none = { 0 };
    MUST(pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED) || pthread_attr_setschedpolicy(attr, SCHED_OTHER) ||
         pthread_attr_setschedparam(attr, &none));
}

static void three(pthread_attr_t *attr)
{
    pthread_t t, u;
    MUST(pthread_create(&t, attr, counts, NULL) || pthread_create(&u, attr, counts, NULL));
    counts(NULL);
    join(t), join(u);
    MUST(x != 3);
}

static void *has_a_stack(void *arg)
{
    pthread_attr_t attr;
    void *stack;
    size_t size;
    MUST(pthread_getattr_np(first, &attr) || pthread_attr_getstack(&attr, &stack, &size) || pthread_attr_destroy(&attr));
    MUST((char *)&arg - (char *)stack > (long)size && pthread_equal(pthread_self(), first));
    return arg;
}

static int policy_of(pthread_t thread)
{
    struct sched_param found;
    int policy;
    MUST(pthread_getschedparam(thread, &policy, &found));
    return policy;
}

static void *sets(void *arg)
{
    struct sched_param none = { 0 };
    MUST(pthread_setschedparam(first, SCHED_BATCH, &none));
    return arg;
}

static void *asks_itself(void *arg)
{
    MUST(policy_of(pthread_self()) != SCHED_OTHER);
    return counts(arg);
}

int main(int argc, char **argv)
{
    pthread_attr_t attr;
    pthread_t t;
    MUST(argc != 2 || pthread_attr_init(&attr));
    first = pthread_self();
    if (!strcmp(argv[1], "processors")) {
        barred(&attr, 0);
        three(&attr);
    } else if (!strcmp(argv[1], "policy")) {
        by_policy(&attr);
        three(&attr);
    } else if (!strcmp(argv[1], "default")) {
        by_policy(&attr);
        MUST(pthread_setattr_default_np(&attr));
        three(NULL);
    } else if (!strcmp(argv[1], "itself")) {
        by_policy(&attr);
        MUST(pthread_create(&t, &attr, asks_itself, NULL));
        counts(NULL);
        join(t);
    } else if (!strcmp(argv[1], "none")) {
        barred(&attr, 1023);
        t = go(counts, NULL);
        MUST(pthread_create(&t, &attr, counts, NULL) != EINVAL);
        counts(NULL);
        pthread_exit(NULL);
    } else if (!strcmp(argv[1], "stack")) {
        t = go(has_a_stack, NULL);
        has_a_stack(NULL);
        join(t);
    } else {
        int seen;
        t = go(sets, NULL);
        seen = policy_of(first);
        join(t);
        assert((seen == SCHED_BATCH) == !strcmp(argv[1], "after"));
    }
    return 0;
}
