/* A deque whose owner takes from the bottom without looking whether a thief was faster. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { N = 4 };
static _Atomic int top, bottom;
static int tasks[N], taken[N];

static void *owner(void *arg)
{
    (void)arg;
    for (int i = 0; i < N; i++) {
        tasks[i] = i;
        bottom++;
    }
    for (;;) {
        int at = --bottom;
        if (at < top) {
            bottom = top;
            return NULL;
        }
        __atomic_fetch_add(&taken[tasks[at]], 1, __ATOMIC_SEQ_CST);
    }
}

static void *thief(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        int at = top;
        if (at >= bottom)
            continue;
        int task = tasks[at];
        if (atomic_compare_exchange_strong(&top, &at, at + 1))
            __atomic_fetch_add(&taken[task], 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, owner, NULL);
    pthread_create(&b, NULL, thief, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    for (int i = 0; i < N; i++)
        assert(taken[i] < 2);
}
