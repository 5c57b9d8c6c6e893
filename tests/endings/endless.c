/* Two threads that never end, and an assertion that fails in one of four rounds of theirs. They meet at a lock that one of them has alone at first. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int state;

static void put(int value)
{
    pthread_mutex_lock(&m);
    state = value;
    pthread_mutex_unlock(&m);
}

static int get(void)
{
    pthread_mutex_lock(&m);
    int value = state;
    pthread_mutex_unlock(&m);
    return value;
}

static void *writes(void *unused)
{
    for (;;) {
        put(1);
        put(0);
    }
    return unused;
}

static void *reads(void *unused)
{
    for (;;) {
        int before = get(), after = get();
        assert(!before || after);
    }
    return unused;
}

int main(void)
{
    pthread_t writer, reader;
    pthread_create(&writer, NULL, writes, NULL);
    pthread_create(&reader, NULL, reads, NULL);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    return 0;
}
