/* A test program with tests of a counter, each explored by vs_check; the argument says which one. It ends with what vs_check returned. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void *in_one_step(void *unused)
{
    pthread_mutex_lock(&lock);
    total++;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *in_two_steps(void *unused)
{
    int seen;
    pthread_mutex_lock(&lock);
    seen = total;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    total = seen + 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

struct setup {
    void *(*step)(void *);
    int threads;
};

static void counts(void *arg)
{
    const struct setup *setup = (const struct setup *)arg;
    pthread_t threads[4];
    int i;
    total = 0;
    for (i = 0; i < setup->threads; i++)
        pthread_create(&threads[i], NULL, setup->step, NULL);
    for (i = 0; i < setup->threads; i++)
        pthread_join(threads[i], NULL);
    VS_assert(total == setup->threads);
    printf("counted %d\n", total);
}

static void *forever(void *unused)
{
    for (;;)
        in_one_step(unused);
    return unused;
}

static void endless(void *unused)
{
    pthread_t thread;
    pthread_create(&thread, NULL, forever, NULL);
    forever(unused);
}

int main(int argc, char **argv)
{
    struct setup right = {in_one_step, 3}, wrong = {in_two_steps, 2};
    struct vs_result result;
    const char *which = argc > 1 ? argv[1] : "";
    int code = 0;
    memset(&result, 0, sizeof result);
    if (strcmp(which, "right") == 0)
        code = vs_check_with(NULL, counts, &right, &result);
    if (strcmp(which, "wrong") == 0)
        code = vs_check_with(NULL, counts, &wrong, &result);
    if (strcmp(which, "both") == 0) {
        /* The second run of the program comes to the second call, and runs nothing at the first. */
        code = vs_check(counts, &right);
        code = code * 10 + vs_check_with("--search naive", counts, &wrong, &result);
    }
    if (strcmp(which, "endless") == 0)
        code = vs_check_with("--time 0.7 --search random", endless, NULL, &result);
    if (strcmp(which, "options") == 0)
        code = vs_check_with("--no-such-option", counts, &right, &result);
    if (strcmp(which, "missed") == 0 && !getenv(VS_CHECK_ID))
        code = vs_check_with(NULL, counts, &right, &result);
    if (strcmp(which, "left") == 0) {
        if (getenv(VS_CHECK_ID))
            _exit(0);
        code = vs_check_with(NULL, counts, &right, &result);
    }
    if (strcmp(which, "other") == 0) {
        /* In the second run another call comes first. */
        if (getenv(VS_CHECK_ID))
            vs_check(counts, &wrong);
        code = vs_check_with(NULL, counts, &right, &result);
    }
    printf("native %d, %s\n", result.native, result.scenario[0] ? result.scenario : "no scenario");
    return code;
}
