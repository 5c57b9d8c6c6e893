/* A parallel quicksort whose workers count what is open without a lock, so that one leaves too early. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>

enum { N = 12, WORKERS = 3 };
static int values[N];
static struct { int from, to; } stack[64];
static int top, open_ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void push(int from, int to)
{
    pthread_mutex_lock(&lock);
    stack[top].from = from;
    stack[top++].to = to;
#ifdef FIXED
    open_ranges++;
#endif
    pthread_mutex_unlock(&lock);
#ifndef FIXED
    open_ranges++;
#endif
}

static int pop(int *from, int *to)
{
    pthread_mutex_lock(&lock);
    int has = top > 0;
    if (has) {
        *from = stack[--top].from;
        *to = stack[top].to;
    }
    pthread_mutex_unlock(&lock);
    return has;
}

static int finished(void)
{
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int done = open_ranges == 0;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return done;
}

static void *sort(void *arg)
{
    (void)arg;
    int from, to;
    while (!finished()) {
        if (!pop(&from, &to)) {
            sched_yield();
            continue;
        }
        if (to - from > 1) {
            int pivot = values[to - 1], at = from;
            for (int i = from; i < to - 1; i++)
                if (values[i] < pivot) {
                    int t = values[i];
                    values[i] = values[at];
                    values[at++] = t;
                }
            values[to - 1] = values[at];
            values[at] = pivot;
            push(from, at);
            push(at + 1, to);
        }
#ifdef FIXED
        pthread_mutex_lock(&lock);
        open_ranges--;
        pthread_mutex_unlock(&lock);
#else
        open_ranges--;
#endif
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < N; i++)
        values[i] = (i * 7 + 3) % N;
    push(0, N);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, sort, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N; i++)
        assert(values[i] == i);
}
