/* A lock-free stack of indices with a free count, three threads that pop and push: one entry is had twice.  FIXED: a mutex around each. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { N = 3 };
static struct { _Atomic int value; _Atomic int next; } array[N];
static _Atomic int head, count;

#ifdef FIXED
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
#define ALONE(statement) (pthread_mutex_lock(&m), statement, pthread_mutex_unlock(&m))
#else
#define ALONE(statement) (statement)
#endif

static int pop(void)
{
    while (count > 1) {
        int top = head;
        int next = atomic_exchange(&array[top].next, -1);
        if (next >= 0) {
            int expected = top;
            if (atomic_compare_exchange_strong(&head, &expected, next)) {
                atomic_fetch_sub(&count, 1);
                return top;
            }
            atomic_exchange(&array[top].next, next);
        }
    }
    return -1;
}

static void push(int index)
{
    int top = head;
    do
        array[index].next = top;
    while (!atomic_compare_exchange_strong(&head, &top, index));
    atomic_fetch_add(&count, 1);
}

static void *use(void *arg)
{
    int number = (int)(long)arg;
    for (int i = 0; i < 2; i++) {
        int index;
        for (;;) {
            ALONE(index = pop());
            if (index >= 0)
                break;
            sched_yield();
        }
        array[index].value = number;
        assert(array[index].value == number);
        ALONE(push(index));
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    count = N;
    for (int i = 0; i < N; i++)
        array[i].next = i + 1 < N ? i + 1 : -1;
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, use, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}
